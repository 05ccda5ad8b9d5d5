"""Tables from npz and Parquet files."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import numpy as np

from coalmine.clients.training.table import Table, table
from coalmine.protocol.errors import DataError, nearest

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
    if not path.is_file():
        raise DataError("there is no such file", where=str(path), remedy="give the path of an npz or Parquet file")
    if path.suffix == ".npz":
        return _npz(path, f"_{part}" if part else "", classes)
    if path.suffix == ".parquet":
        return _parquet(path, label, classes)
    raise DataError(f"files of kind {path.suffix!r} are not read", where=str(path), remedy="needs .npz or .parquet")


def _npz(path: Path, suffix: str, classes: int | None) -> Table:
    try:
        with np.load(path, allow_pickle=False) as file:
            wanted = {name: name + suffix for name in ("x", "y", "group", "user")}
            for name in ("x", "y"):
                if wanted[name] not in file.files:
                    raise DataError(
                        f"there is no array {wanted[name]!r}",
                        where=str(path),
                        remedy=nearest(wanted[name], file.files),
                    )
            read = {name: file[key] for name, key in wanted.items() if key in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataError("this is not a readable npz file", where=str(path), remedy="write it anew") from error
    return table(read["x"], read["y"], classes, group=read.get("group"), user=read.get("user"), where=str(path))


def _parquet(path: Path, label: str, classes: int | None) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq
    import pyarrow.types as types

    try:
        columns = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError("this is not a readable Parquet file", where=str(path), remedy="write it anew") from error
    names = columns.column_names
    if label not in names:
        raise DataError(f"there is no column {label!r}", where=str(path), remedy=nearest(label, names))
    owners = {name: columns[name].to_numpy() for name in ("group", "user") if name in names and name != label}
    if "features" in names:
        rows = columns["features"].to_pylist()
        if len({len(row) if isinstance(row, list) else -1 for row in rows}) > 1:
            raise DataError("lists of different lengths", where=f"{path}, features", remedy="make them equally long")
        x = np.array(rows)
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
