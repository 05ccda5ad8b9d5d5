"""Tables from npz and Parquet files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.lib.npyio import NpzFile

from coalmine.clients.training.table import Table, table
from coalmine.protocol.errors import DataError, nearest
from coalmine.protocol.sealed import NO_NPZ

_IDENTIFIER = re.compile(r"(^|_)(id|uid|guid|uuid|user|users|userid|client|clientid|person|patient)$", re.IGNORECASE)


def load(path: Path, *, part: str = "", label: str = "label", classes: int | None = None) -> Table:
    """A table from a file.

    * ``.npz``: arrays ``x`` and ``y``, or ``x_<part>`` and ``y_<part>``; optional ``group`` and ``user`` alike.
    * ``.parquet``: the column ``label``, optional columns ``group`` and ``user``, and either one column ``features`` of
      equally long lists or every other numeric column as one feature; none may be
      called like an identifier.

    Args:
        part: "train", "test", ... of an npz file that holds several.

    Raises:
        DataError: no such file, a damaged one, missing arrays or columns, values that cannot serve.
    """
    _check_there(path)
    if path.suffix == ".npz":
        return _npz(path, f"_{part}" if part else "", classes)
    if path.suffix == ".parquet":
        return _parquet(path, label, classes)
    raise DataError(f"files of kind {path.suffix!r} are not read", where=str(path), remedy="needs .npz or .parquet")


def has_parts(path: Path) -> bool:
    """Whether an npz file keeps samples for training apart.

    Raises:
        DataError: no such file, or a damaged one.
    """
    _check_there(path)
    with _arrays(path) as file:
        return "x_train" in file.files


def _check_there(path: Path) -> None:
    try:
        folder, there = path.is_dir(), path.is_file()
    except OSError as error:
        raise DataError(f"the file cannot be read: {error.strerror}", where=str(path), remedy="check it") from error
    if folder:
        raise DataError("this is a folder, not a file", where=str(path), remedy="name the file itself")
    if not there:
        raise DataError("there is no such file", where=str(path), remedy="give the path of an npz or Parquet file")


@contextmanager
def _arrays(path: Path) -> Iterator[NpzFile]:
    """An open npz file; damage that shows while it is open is its damage too."""
    try:
        # Opened here, since numpy leaves a file open that is no archive.
        with path.open("rb") as raw:
            file = np.load(raw, allow_pickle=False)
            if not isinstance(file, NpzFile):
                raise DataError("this is a single array, not an npz file", where=str(path), remedy="use numpy.savez")
            with file:
                yield file
    except MemoryError as error:
        raise DataError(
            "an array claims more memory than there is", where=str(path), remedy="write it anew, or smaller"
        ) from error
    except NO_NPZ as error:
        raise DataError("this is not a readable npz file", where=str(path), remedy="write it anew") from error


def _npz(path: Path, suffix: str, classes: int | None) -> Table:
    wanted = {name: name + suffix for name in ("x", "y", "group", "user")}
    with _arrays(path) as file:
        for name in ("x", "y"):
            if wanted[name] not in file.files:
                raise DataError(
                    f"there is no array {wanted[name]!r}", where=str(path), remedy=nearest(wanted[name], file.files)
                )
        read = {name: file[key] for name, key in wanted.items() if key in file.files}
    return table(read["x"], read["y"], classes, group=read.get("group"), user=read.get("user"), where=str(path))


def _parquet(path: Path, label: str, classes: int | None) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq
    import pyarrow.types as types

    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            twice = [name for name, count in Counter(names).items() if count > 1]
            if twice:
                raise DataError(f"the column {twice[0]!r} is there twice", where=str(path), remedy="rename one of them")
            columns = file.read()
    except (pa.ArrowException, OSError) as error:
        raise DataError("this is not a readable Parquet file", where=str(path), remedy="write it anew") from error
    if label not in names:
        raise DataError(f"there is no column {label!r}", where=str(path), remedy=nearest(label, names))
    owners = {name: columns[name].to_numpy() for name in ("group", "user") if name in names and name != label}
    if "features" in names:
        rows = columns["features"].to_pylist()
        if len({len(row) if isinstance(row, list) else -1 for row in rows}) > 1:
            raise DataError("lists of different lengths", where=f"{path}, features", remedy="make them equally long")
        try:
            x = np.array(rows)
        except ValueError:
            raise DataError(
                "lists of different lengths", where=f"{path}, features", remedy="make them equally long"
            ) from None
    else:
        kept = [name for name in names if name not in (label, *owners)]
        for name in kept:
            if _IDENTIFIER.search(name):
                raise DataError(
                    f"the column {name!r} is called like an identifier, and would be a feature",
                    where=str(path),
                    remedy="call it user if it says whose a sample is, or leave it out",
                )
            kind = columns.schema.field(name).type
            if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
                raise DataError(f"the column {name!r} holds {kind}", where=str(path), remedy="needs numbers")
        x = np.stack([columns[name].to_numpy() for name in kept], axis=1) if kept else np.zeros((len(columns), 0))
    return table(
        x, columns[label].to_numpy(), classes, group=owners.get("group"), user=owners.get("user"), where=str(path)
    )
