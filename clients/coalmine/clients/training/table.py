"""Labelled samples as arrays. A sample's id is its row: public, fixed for a run, the key of its coins and its place."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coalmine.protocol.errors import DataError


@dataclass(frozen=True, eq=False)
class Table:
    """Samples, labels, and what is known about their owners.

    Attributes:
        x: (n, *shape) float32 features; images are (n, channels, height, width).
        y: (n,) int64 labels in [0, classes).
        classes: >= 2, public.
        group: (n,) int64 subgroup of each sample (0 = majority), or ``None``.
        user: (n,) int64 owner of each sample, or ``None``.
    """

    x: NDArray[np.float32]
    y: NDArray[np.int64]
    classes: int
    group: NDArray[np.int64] | None = None
    user: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.y)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one sample."""
        return self.x.shape[1:]

    @property
    def digest(self) -> str:
        """SHA-256 of shapes and values: whether a client still holds what it held before. Not for publication."""
        hashed = hashlib.sha256(f"{self.x.shape} {self.classes}".encode())
        for column in (self.x, self.y, self.group, self.user):
            hashed.update(b"-" if column is None else np.ascontiguousarray(column).tobytes())
        return hashed.hexdigest()

    def take(self, rows: ArrayLike) -> Table:
        """The samples at these rows, in this order, with new ids."""
        index = np.asarray(rows, np.int64)
        return replace(
            self,
            x=self.x[index],
            y=self.y[index],
            group=None if self.group is None else self.group[index],
            user=None if self.user is None else self.user[index],
        )

    def with_rows(self, x: ArrayLike, y: ArrayLike) -> Table:
        """The same samples and some more behind them (canaries), of no group or user. Ids of the old ones stay.

        Raises:
            DataError: as :func:`table`.
        """
        more = table(x, y, self.classes, where="added samples")
        if more.shape != self.shape:
            raise DataError(
                f"samples of shape {more.shape}", where="added samples", remedy=f"these data have shape {self.shape}"
            )
        blank = np.full(len(more), -1, np.int64)
        return replace(
            self,
            x=np.concatenate([self.x, more.x]),
            y=np.concatenate([self.y, more.y]),
            group=None if self.group is None else np.concatenate([self.group, blank]),
            user=None if self.user is None else np.concatenate([self.user, blank]),
        )


def table(
    x: ArrayLike,
    y: ArrayLike,
    classes: int | None = None,
    *,
    group: ArrayLike | None = None,
    user: ArrayLike | None = None,
    where: str,
) -> Table:
    """A checked table.

    Args:
        classes: how many there are; by default the largest label + 1, which makes the labels' range public.
        where: file or source, for messages.

    Raises:
        DataError: lengths that do not fit, a feature that is no number, a label out of range.
    """
    features, raw = np.asarray(x), np.asarray(y)
    if features.ndim < 2 or raw.ndim != 1 or len(features) != len(raw):
        raise DataError(
            f"features of shape {features.shape} and labels of shape {raw.shape}",
            where=where,
            remedy="needs (n, ...) features and (n,) labels",
        )
    if not (np.issubdtype(features.dtype, np.number) or features.dtype == np.bool_):
        raise DataError(f"features of type {features.dtype}", where=where, remedy="needs numbers")
    features = features.astype(np.float32)
    if not np.isfinite(features).all():
        row = int(np.argwhere(~np.isfinite(features))[0, 0])
        raise DataError("a feature is not a finite number", where=f"{where}, row {row + 1}", remedy="mend or drop it")
    labels = _whole(raw, "label", where)
    count = classes if classes is not None else (int(labels.max()) + 1 if len(labels) else 0)
    if count < 2:
        raise DataError(f"{count} classes", where=where, remedy="needs two or more")
    wrong = np.flatnonzero((labels < 0) | (labels >= count))
    if len(wrong):
        raise DataError(
            "a label is out of range", where=f"{where}, row {wrong[0] + 1}", remedy=f"needs labels 0 to {count - 1}"
        )
    owners = [None if column is None else _column(column, len(labels), where) for column in (group, user)]
    return Table(features, labels, count, *owners)


def _column(values: ArrayLike, n: int, where: str) -> NDArray[np.int64]:
    column = np.asarray(values)
    if column.shape != (n,):
        raise DataError(f"a column of shape {column.shape}", where=where, remedy=f"needs {n} values")
    if np.issubdtype(column.dtype, np.integer):
        return column.astype(np.int64)
    return np.unique(column.astype(str), return_inverse=True)[1].astype(np.int64)


def _whole(values: NDArray[np.generic], what: str, where: str) -> NDArray[np.int64]:
    if not np.issubdtype(values.dtype, np.number):
        raise DataError(f"{what}s of type {values.dtype}", where=where, remedy="needs whole numbers")
    whole = values.astype(np.int64)
    different = np.flatnonzero(whole != values)
    if len(different):
        raise DataError(
            f"a {what} is not a whole number", where=f"{where}, row {different[0] + 1}", remedy="needs whole numbers"
        )
    return whole
