"""Votes of one's own: the arrays of one audit, read from a file and checked.

JSON: an object with

    params            k, C, q, sigma, delta, m; where given, p, d, r, pool, N, n_aux must agree with the arrays
    bank              (p, d) embeddings of the candidates
    pool              (M, d) embeddings of the probe candidates
    canary            (n, d) embeddings of the canary's records
    aux, test         lists of users, each a list of records (n_u, d)
    probe_positions   (r,) ascending bank positions that probes replace

NPZ: the same names; ``params`` is a JSON string, and the users' records are one array ``aux`` (sum n_u, d) with
``aux_offsets`` (users + 1,) row starts, likewise ``test`` and ``test_offsets``. Other entries are ignored. Every
embedding has length 1.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.errors import BankError, DataError, InputError, StudyError, nearest
from coalmine.protocol.privacy import Mechanism

Array = NDArray[np.float64]

_UNIT_LENGTH = 1e-4
"""How far from 1 the length of an embedding may be; leaves room for single precision and printed digits."""
_SIZES = ("p", "d", "r", "pool", "N", "n_aux")


@dataclass(frozen=True)
class Users:
    """Records of several users in one array.

    Attributes:
        records: (sum n_u, d) float64.
        offsets: (users + 1,) int64; user u owns rows ``offsets[u] : offsets[u + 1]``.
    """

    records: Array
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True)
class Case:
    """One audit's arrays, checked. Shapes as in the module's description."""

    mechanism: Mechanism
    bank: Array
    pool: Array
    canary: Array
    auxiliary: Users
    test: Users
    probe_positions: NDArray[np.int64]


def load_case(path: Path) -> dict[str, Any]:
    """The entries of a ``.json`` or ``.npz`` file, unchecked.

    Raises:
        InputError: the file is missing, unreadable or of another kind.
    """
    if path.suffix not in (".json", ".npz"):
        raise InputError("the file is neither .json nor .npz", where=str(path), remedy="save the case as one of them")
    try:
        if path.suffix == ".npz":
            if path.exists() and not zipfile.is_zipfile(path):
                raise ValueError("not an archive")
            with np.load(path, allow_pickle=False) as archive:
                return {key: archive[key] for key in archive.files}
        case = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path), remedy="check the path") from error
    except (ValueError, RecursionError, zipfile.BadZipFile) as error:
        raise InputError(
            f"is not a valid {path.suffix[1:]} file of numbers: {error}", where=str(path), remedy="write the file again"
        ) from error
    if not isinstance(case, dict):
        raise InputError(
            "the file holds no JSON object", where=str(path), remedy='needs {"params": ..., "bank": ..., ...}'
        )
    return case


def check_case(case: Mapping[str, Any]) -> Case:
    """Check every entry of a case.

    Raises:
        StudyError: a parameter is missing, out of range or disagrees with the arrays.
        DataError: an array is missing, has the wrong shape, is not finite or not of unit length, or a user has too many
            records.
        BankError: the probe positions do not fit the bank, or the pool is smaller than r.
    """
    params = _params(case)
    mechanism = Mechanism(
        q=_number(params, "q"),
        sigma=_number(params, "sigma"),
        clip=_number(params, "C"),
        delta=_number(params, "delta"),
        votes_per_record=_count(params, "k"),
        max_records=_count(params, "m"),
    )
    bank = _embeddings(_entry(case, "bank"), "bank")
    dimension = bank.shape[1]
    pool = _embeddings(_entry(case, "pool"), "pool", dimension)
    canary = _embeddings(_entry(case, "canary"), "canary", dimension)
    auxiliary, test = _users(case, "aux", dimension), _users(case, "test", dimension)
    positions = _positions(_entry(case, "probe_positions"), len(bank))
    if not len(auxiliary):
        raise DataError("there is no auxiliary user", where="aux", remedy="needs at least one")
    for what, most in (
        ("canary", len(canary)),
        *((k, int(np.diff(u.offsets).max(initial=0))) for k, u in (("aux", auxiliary), ("test", test))),
    ):
        if most > mechanism.max_records:
            raise DataError(f"a user has {most} records", where=what, remedy=f"params.m allows {mechanism.max_records}")
    if len(pool) < len(positions):
        raise BankError(
            f"the pool holds {len(pool)} items, but {len(positions)} probes are to be chosen",
            where="pool",
            remedy="enlarge the pool or lower r",
        )
    if len(bank) - len(positions) < mechanism.votes_per_record:
        raise BankError(
            f"{len(bank) - len(positions)} candidates stay beside the probes, but each record votes for "
            f"{mechanism.votes_per_record}",
            where="bank",
            remedy="enlarge the bank",
        )
    found = dict(zip(_SIZES, (*bank.shape, len(positions), len(pool), len(test), len(auxiliary)), strict=True))
    for key, size in found.items():
        if key in params and _count(params, key, least=0) != size:
            raise StudyError(
                f"says {params[key]!r}, but the arrays say {size}", where=f"params.{key}", remedy="mend one"
            )
    return Case(mechanism, bank, pool, canary, auxiliary, test, positions)


def _entry(case: Mapping[str, Any], key: str, inside: str = "") -> Any:
    if key not in case:
        raise (StudyError if inside else DataError)(
            f"{inside}{key} is missing", where="case", remedy=nearest(key, case)
        )
    return case[key]


def _params(case: Mapping[str, Any]) -> Mapping[str, Any]:
    params = _entry(case, "params")
    if isinstance(params, np.ndarray) and params.ndim == 0:
        params = params.item()
    if isinstance(params, str):
        try:
            params = json.loads(params)
        except ValueError as error:
            raise StudyError(f"is not JSON: {error}", where="params", remedy='needs {"k": 5, ...}') from error
    if not isinstance(params, Mapping):
        raise StudyError("is no table of names and numbers", where="params", remedy='needs {"k": 5, ...}')
    return params


def _number(params: Mapping[str, Any], key: str) -> float:
    value = _entry(params, key, "params.")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise StudyError(f"{value!r} is not a number", where=f"params.{key}", remedy="needs a number")
    return float(value)


def _count(params: Mapping[str, Any], key: str, least: int = 1) -> int:
    value = _number(params, key)
    if not (value.is_integer() and value >= least):
        raise StudyError(
            f"{value!r} is not allowed", where=f"params.{key}", remedy=f"needs a whole number from {least}"
        )
    return int(value)


def _numbers(value: Any, where: str, kinds: str = "iuf") -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise DataError("rows differ in length", where=where, remedy="needs a rectangle of numbers") from error
    if array.dtype.kind not in kinds and array.size:
        wanted = "whole numbers" if "f" not in kinds else "numbers"
        raise DataError(f"holds values that are not {wanted}", where=where, remedy=f"needs a rectangle of {wanted}")
    return array


def _embeddings(value: Any, where: str, dimension: int | None = None, least: int = 1) -> Array:
    array = np.ascontiguousarray(_numbers(value, where), dtype=np.float64)
    if array.size == 0 and least == 0:
        return np.empty((0, dimension or 0))
    if array.ndim != 2 or len(array) < least or (dimension is not None and array.shape[1] != dimension):
        raise DataError(
            f"has shape {array.shape}",
            where=where,
            remedy=f"needs (rows, {dimension or 'dimensions'}), at least {least} rows",
        )
    with np.errstate(over="ignore"):  # a length beyond the range of numbers is not 1 either
        lengths = np.linalg.norm(array, axis=1)
    for holds, what in (
        (np.isfinite(array).all(axis=1), "is not finite"),
        (np.abs(lengths - 1) <= _UNIT_LENGTH, "has not length 1"),
    ):
        if not holds.all():
            row = int(np.flatnonzero(~holds)[0])
            raise DataError(f"the embedding in row {row} {what}", where=where, remedy="needs L2-normalised finite rows")
    return array


def _users(case: Mapping[str, Any], key: str, dimension: int) -> Users:
    value = _entry(case, key)
    if f"{key}_offsets" in case:
        records = _embeddings(value, key, dimension, least=0)
        offsets = _numbers(case[f"{key}_offsets"], f"{key}_offsets", "iu").astype(np.int64)
        if (
            offsets.ndim != 1
            or not len(offsets)
            or offsets[0] != 0
            or offsets[-1] != len(records)
            or (np.diff(offsets) < 0).any()
        ):
            raise DataError(
                "the row starts do not fit the records",
                where=f"{key}_offsets",
                remedy=f"needs (users + 1,) ascending values from 0 to {len(records)}",
            )
        return Users(records, offsets)
    if isinstance(value, np.ndarray) and value.ndim != 3:
        raise DataError("one array does not say whose records are whose", where=key, remedy=f"add {key}_offsets")
    if not isinstance(value, list | tuple | np.ndarray):
        raise DataError("is no list of users", where=key, remedy="needs a list of users, each a list of records")
    parts = [_embeddings(user, f"{key}[{index}]", dimension, least=0) for index, user in enumerate(value)]
    offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return Users(np.concatenate([np.empty((0, dimension)), *parts]), offsets)


def _positions(value: Any, size: int) -> NDArray[np.int64]:
    array = _numbers(value, "probe_positions", "iu")
    if array.ndim != 1 or not len(array) or (np.diff(array) <= 0).any() or array[0] < 0 or array[-1] >= size:
        raise BankError(
            "the positions do not fit the bank",
            where="probe_positions",
            remedy=f"needs ascending distinct whole numbers from 0 to {size - 1}, at least one",
        )
    return array.astype(np.int64)
