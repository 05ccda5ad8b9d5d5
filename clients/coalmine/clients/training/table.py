"""Labelled samples as arrays. A sample's id is its row: public, fixed for a run, the key of its coins and its place."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coalmine.protocol.errors import DataError

MOST_CLASSES = 10_000
"""One more label makes one more row of every model: a label far beyond the others is a slip, or somebody's id."""


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
        classes: how many there are; by default the largest label + 1, which makes the labels' range public, at most
            ``MOST_CLASSES``.
        group, user: (n,) whole numbers, or finite numbers or texts that are numbered in ascending order.
        where: file or source, for messages.

    Raises:
        DataError: lengths that do not fit, a feature that is no real number, a label out of range, a sample of no group
            or user.
    """
    features, raw = np.asarray(x), np.asarray(y)
    if features.ndim < 2 or raw.ndim != 1 or len(features) != len(raw):
        raise DataError(
            f"features of shape {features.shape} and labels of shape {raw.shape}",
            where=where,
            remedy="needs (n, ...) features and (n,) labels",
        )
    if features.dtype.kind not in "biuf":
        raise DataError(f"features of type {features.dtype}", where=where, remedy="needs numbers")
    with np.errstate(over="ignore"):
        features = features.astype(np.float32)
    if not np.isfinite(features).all():
        row = int(np.argwhere(~np.isfinite(features))[0, 0])
        raise DataError("a feature is not a finite number", where=f"{where}, row {row + 1}", remedy="mend or drop it")
    labels, count = _labels(raw, classes, where)
    owners = [
        None if column is None else _owners(column, what, len(labels), where)
        for what, column in (("group", group), ("user", user))
    ]
    return Table(features, labels, count, *owners)


def _labels(values: NDArray[Any], classes: int | None, where: str) -> tuple[NDArray[np.int64], int]:
    """Labels and the number of classes. Checked before they are cast: a cast wraps around."""
    if values.dtype.kind not in "iuf":
        raise DataError(f"labels of type {values.dtype}", where=where, remedy="needs whole numbers")
    whole = values.dtype.kind != "f" or (np.isfinite(values) & (np.floor(values) == values))
    broken = np.flatnonzero(~np.broadcast_to(whole, values.shape))
    if len(broken):
        raise DataError(
            "a label is not a whole number", where=f"{where}, row {broken[0] + 1}", remedy="needs whole numbers"
        )
    large = np.flatnonzero(values >= MOST_CLASSES)
    if classes is None and len(large):
        raise DataError(
            f"a label is {MOST_CLASSES:,} or more",
            where=f"{where}, row {large[0] + 1}",
            remedy="number the classes 0, 1, 2, ...",
        )
    count = classes if classes is not None else (int(values.max()) + 1 if len(values) else 0)
    if count < 2:
        raise DataError(f"{count} classes", where=where, remedy="needs two or more")
    wrong = np.flatnonzero((values < 0) | (values >= count))
    if len(wrong):
        raise DataError(
            "a label is out of range", where=f"{where}, row {wrong[0] + 1}", remedy=f"needs labels 0 to {count - 1}"
        )
    return values.astype(np.int64), count


def _owners(values: ArrayLike, what: str, n: int, where: str) -> NDArray[np.int64]:
    column = np.asarray(values)
    if column.shape != (n,):
        raise DataError(f"a column {what} of shape {column.shape}", where=where, remedy=f"needs {n} values")
    if column.dtype.kind not in "biufUSO":
        raise DataError(f"a column {what} of type {column.dtype}", where=where, remedy="needs whole numbers or text")
    nobody = np.flatnonzero(~_said(column))
    if len(nobody):
        raise DataError(
            f"a sample's {what} is missing, or neither a finite number nor text",
            where=f"{where}, row {nobody[0] + 1}",
            remedy="mend it or drop the sample",
        )
    if column.dtype.kind in "iu":
        return column.astype(np.int64)
    names = column if column.dtype.kind == "S" else column.astype(str)
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def _said(column: NDArray[Any]) -> NDArray[np.bool_]:
    """(n,) whether each value says whose a sample is."""
    if column.dtype.kind == "O":
        return np.array([isinstance(value, str) for value in column], bool)
    return np.isfinite(column) if column.dtype.kind == "f" else np.ones(len(column), bool)
