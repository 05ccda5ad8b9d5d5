"""JSONL, CSV and Parquet files of records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from coalmine.clients.data.columnar import parquet_rows
from coalmine.clients.data.formats import csv_rows, jsonl_rows
from coalmine.clients.data.rows import Broken, Columns, OnBadRecord, Reading, Row, accept, gather
from coalmine.clients.data.users import UserTable
from coalmine.protocol.errors import DataError

EXTENSIONS = (".jsonl", ".ndjson", ".csv", ".parquet")


@dataclass(frozen=True)
class FileSource:
    """A file with one row per record.

    Attributes:
        path: its extension (.jsonl, .ndjson, .csv, .parquet; upper case too) says how to read it.
        on_bad_record: what a blank or non-text record means: "error", or "drop" it and count.
    """

    path: Path
    columns: Columns = field(default_factory=Columns)
    on_bad_record: OnBadRecord = "error"


def read_file(source: FileSource) -> UserTable:
    """The users of a file.

    Raises:
        DataError: the file cannot be opened or is none of the formats, a column is missing, or rows cannot be used.
    """
    return accept(examine_file(source), source.on_bad_record)


def examine_file(source: FileSource) -> Reading:
    """All users that can be read, and every flaw, without stopping at the first.

    Raises:
        DataError: nothing can be read: no such file, an unknown format, an empty file, a missing column.
    """
    suffix = source.path.suffix.lower()
    return gather(_rows(source, suffix), source.path.name, "row" if suffix == ".parquet" else "line")


def rows_of(source: FileSource) -> Iterator[Row | Broken]:
    """Rows as they are read, one at a time.

    Raises:
        DataError: as :func:`examine_file`.
    """
    return _rows(source, source.path.suffix.lower())


def _rows(source: FileSource, suffix: str) -> Iterator[Row | Broken]:
    path, where = source.path, str(source.path)
    try:
        with path.open("rb") as lines:
            if suffix not in EXTENSIONS:
                what = f"the extension {path.suffix!r} is unknown" if suffix else "the file has no extension"
                raise DataError(what, where=where, remedy="known: " + ", ".join(EXTENSIONS))
            if not lines.peek(1):
                raise DataError("the file is empty", where=where, remedy="one row per record is needed")
            if suffix == ".parquet":
                yield from parquet_rows(path, source.columns, where)
            else:
                yield from (csv_rows if suffix == ".csv" else jsonl_rows)(lines, source.columns, where)
    except FileNotFoundError:
        raise DataError("there is no such file", where=where, remedy="check the path") from None
    except IsADirectoryError:
        remedy = "name the file itself; a data set saved by the datasets library is read as a Hugging Face data set"
        raise DataError("this is a folder, not a file", where=where, remedy=remedy) from None
    except OSError as error:
        raise DataError(f"the file cannot be read: {error.strerror}", where=where, remedy="check it") from error
