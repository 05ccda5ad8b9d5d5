"""Columns of a file without users: synthetic records, canaries. Read row by row, as often as asked."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from coalmine.clients.data.files import EXTENSIONS
from coalmine.clients.data.rows import missing_column
from coalmine.protocol.errors import DataError

_LARGEST_CELL = 1 << 27


def read_columns(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The cells of the named columns, row by row, as text.

    Raises:
        DataError: no such file, another format, a missing column, a row that cannot be read or a cell that is no text
            (with its place, never with its content).
    """
    suffix = path.suffix.lower()
    if suffix not in EXTENSIONS:
        raise DataError(f"the extension {path.suffix!r} is unknown", where=str(path), remedy=", ".join(EXTENSIONS))
    try:
        if suffix == ".parquet":
            yield from _parquet(path, columns)
        else:
            yield from (_csv if suffix == ".csv" else _jsonl)(path, columns)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", where=str(path), remedy="check it") from error
    except UnicodeDecodeError as error:
        raise DataError("not UTF-8", where=str(path), remedy="write it anew as UTF-8") from error


def _csv(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    before = csv.field_size_limit(_LARGEST_CELL)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            names = next(reader, None)
            if names is None:
                raise DataError("the file is empty", where=str(path), remedy="a header and rows are needed")
            _present(columns, names, path, header=True)
            places = [names.index(column) for column in columns]
            for row in reader:
                if not row:
                    continue
                if len(row) != len(names):
                    raise DataError(
                        f"{len(row)} fields instead of {len(names)}",
                        where=f"{path}, line {reader.line_num}",
                        remedy="quote cells that hold commas",
                    )
                yield tuple(row[place] for place in places)
    except csv.Error as error:
        raise DataError(f"not valid CSV: {error}", where=str(path), remedy="write it anew") from error
    finally:
        csv.field_size_limit(before)


def _jsonl(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            if line.isspace():
                continue
            where = f"{path}, line {number}"
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                raise DataError("not valid JSON", where=where, remedy="one object per line") from None
            if not isinstance(row, dict):
                raise DataError("no JSON object", where=where, remedy="one object per line")
            _present(columns, list(row), path)
            yield tuple(_text(row[column], where) for column in columns)


def _parquet(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            _present(columns, file.schema_arrow.names, path)
            number = 0
            for batch in file.iter_batches(columns=list(columns)):
                for row in zip(*(batch.column(column).to_pylist() for column in columns), strict=True):
                    number += 1
                    yield tuple(_text(cell, f"{path}, row {number}") for cell in row)
    except pa.ArrowException as error:
        raise DataError("not a readable Parquet file", where=str(path), remedy="write it anew") from error


def _present(columns: Sequence[str], names: Sequence[str], path: Path, *, header: bool = False) -> None:
    for column in columns:
        if column not in names:
            raise missing_column(column, names, str(path), header=header)


def _text(cell: object, where: str) -> str:
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool | int):
        return str(int(cell))
    raise DataError("a cell holds no text", where=where, remedy="text is needed")
