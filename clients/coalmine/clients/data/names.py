"""The columns of a file, from its beginning alone."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from coalmine.clients.data.files import EXTENSIONS


def column_names(path: Path) -> tuple[str, ...]:
    """Names in the header, the schema or the first object; empty where there are none to be read.

    A question, not a check: what is wrong with a file is said by whoever reads it.
    """
    suffix = path.suffix.lower()
    if suffix not in EXTENSIONS:
        return ()
    if suffix == ".parquet":
        return _schema(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if suffix == ".csv":
                return tuple(next(filter(None, csv.reader(file)), ()))
            first = json.loads(next((line for line in file if line.strip()), "{}"))
    except (OSError, ValueError, RecursionError, csv.Error):
        return ()
    return tuple(first) if isinstance(first, dict) else ()


def _schema(path: Path) -> tuple[str, ...]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return tuple(pq.read_schema(path).names)
    except (pa.ArrowException, OSError):
        return ()
