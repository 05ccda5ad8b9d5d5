"""Packed arrays that say whether they are still what was packed: checkpoints and finished work to go on from."""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.errors import StorageError

_SEAL = "seal"
_DAMAGED = (
    OSError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    EOFError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What NumPy raises about a file that is no npz, or no longer one."""

Arrays = dict[str, NDArray[np.generic]]


def sealed(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    """An npz file with a digest of names, types, shapes and contents."""
    packed = io.BytesIO()
    kept: dict[str, Any] = {**arrays, _SEAL: np.frombuffer(_digest(arrays), np.uint8)}
    np.savez(packed, **kept)
    return packed.getvalue()


def unsealed(packed: bytes, what: str, where: str, remedy: str) -> Arrays:
    """The arrays, as they were sealed.

    Args:
        what, where, remedy: of the error, e.g. "the checkpoint" and its path.

    Raises:
        StorageError: this is not what was sealed. An edited checkpoint could claim fewer steps than were taken.
    """
    try:
        with np.load(io.BytesIO(packed), allow_pickle=False) as file:
            arrays = {name: np.asarray(file[name]) for name in file.files}
    except _DAMAGED as error:
        raise StorageError(f"{what} is not readable", where=where, remedy=remedy) from error
    seal = arrays.pop(_SEAL, None)
    if seal is None or seal.tobytes() != _digest(arrays):
        raise StorageError(f"{what} is damaged, or was changed", where=where, remedy=remedy)
    return arrays


def _digest(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    whole = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        for part in (name.encode(), array.dtype.str.encode(), repr(array.shape).encode(), array.tobytes()):
            whole.update(len(part).to_bytes(8, "little"))
            whole.update(part)
    return whole.digest()
