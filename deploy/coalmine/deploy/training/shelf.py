"""Finished groups of shadow models on disk, so that an audit that was killed goes on where it stopped.

A group's name is a digest of everything that determines its numbers; a file with that name is its result. The files say
which samples were dropped and what each model thinks of them: they are private to who audits.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.report.write import write_bytes
from coalmine.clients.training.fast.shadows import Common, Shadows
from coalmine.clients.training.plan import Plan
from coalmine.protocol.errors import StorageError
from coalmine.protocol.sealed import sealed, unsealed

_OWNER_ONLY = 0o600


class Shelf:
    """A folder of results.

    Args:
        folder: made where it is missing. versions: of the software; another version may round in another way.

    Raises:
        StorageError: the folder cannot be made.
    """

    def __init__(self, folder: Path, versions: str) -> None:
        self._folder, self._versions = folder, versions
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise StorageError("the folder cannot be made", where=str(folder), remedy="choose another") from error

    def clear(self) -> None:
        """Forget everything.

        Raises:
            StorageError: something cannot be removed.
        """
        try:
            for path in self._folder.glob("*.npz"):
                path.unlink()
        except OSError as error:
            raise StorageError("old results cannot be removed", where=str(self._folder)) from error

    def name(self, common: str, plan: Plan, included: NDArray[np.bool_], seeds: NDArray[np.int64], at_once: int) -> str:
        """Of one group of models.

        Args:
            common: :func:`digest` of what all models share.
        """
        text = f"{self._versions} {common} {plan!r} {included.shape} {at_once}"
        return _hashed(text.encode(), np.packbits(included).tobytes(), seeds.tobytes())

    def find(self, name: str) -> Shadows | None:
        """The group's result, ``None`` where it is not finished.

        Raises:
            StorageError: a damaged file.
        """
        path = self._folder / f"{name}.npz"
        if not path.is_file():
            return None
        remedy = "remove this file"
        file: dict[str, NDArray[Any]] = dict(unsealed(path.read_bytes, "a finished group", str(path), remedy))
        if set(file) != {column.name for column in fields(Shadows)}:
            raise StorageError("a finished group has other columns", where=str(path), remedy=remedy)
        return Shadows(**file)

    def keep(self, name: str, shadows: Shadows) -> None:
        """Complete or not there.

        Raises:
            StorageError: it cannot be written.
        """
        packed = sealed({column.name: getattr(shadows, column.name) for column in fields(Shadows)})
        write_bytes(self._folder / f"{name}.npz", packed, mode=_OWNER_ONLY)


def digest(common: Common) -> str:
    """Of everything that all models of a group share."""
    gradient, asked = common.gradient, common.asked
    columns = [common.start, common.groups, asked.questions]
    columns += [] if gradient is None else [gradient.coordinate, gradient.size, gradient.label]
    flags = (asked.losses, asked.each, asked.updates)
    text = f"{common.spec!r} {common.data.digest} {common.canaries} {common.test.digest} {flags} {gradient is None}"
    return _hashed(text.encode(), *(_bytes(column) for column in columns))


def _bytes(column: NDArray[np.generic] | None) -> bytes:
    if column is None:
        return b"none"
    return f"{column.shape} {column.dtype} ".encode() + np.ascontiguousarray(column).tobytes()


def _hashed(*parts: bytes) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "little"))
        whole.update(part)
    return whole.hexdigest()
