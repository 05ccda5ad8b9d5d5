"""Packed arrays that say whether they are still what was packed: checkpoints and finished work to go on from."""

from __future__ import annotations

import hashlib
import io
import lzma
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.errors import StorageError

_SEAL = "seal"
NO_NPZ = (
    OSError,
    EOFError,
    ValueError,
    TypeError,
    LookupError,
    SyntaxError,
    RuntimeError,
    MemoryError,
    lzma.LZMAError,
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,
)
"""What NumPy and zipfile raise about a file that is no npz: cut, flipped, encrypted or compressed in an unknown way."""

Arrays = dict[str, NDArray[np.generic]]


def sealed(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    """An npz file with a digest of names, types, shapes and contents."""
    packed = io.BytesIO()
    kept: dict[str, Any] = {**arrays, _SEAL: np.frombuffer(_digest(arrays), np.uint8)}
    np.savez(packed, **kept)
    return packed.getvalue()


def unsealed(read: Callable[[], bytes], what: str, where: str, remedy: str) -> Arrays:
    """The arrays, as they were sealed.

    Args:
        read: gives what was sealed; it may fail as reading a file does.
        what, where, remedy: of the error, e.g. "the checkpoint" and its path.

    Raises:
        StorageError: it cannot be read, or is not what was sealed. An edited checkpoint could claim fewer steps than
            were taken.
    """
    try:
        with np.load(io.BytesIO(read()), allow_pickle=False) as file:
            arrays = {name: np.asarray(file[name]) for name in file.files}
    except NO_NPZ as error:
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
