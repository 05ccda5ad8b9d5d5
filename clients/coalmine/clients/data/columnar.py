"""Rows of Arrow tables: Parquet files, and data sets of the Hugging Face kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coalmine.clients.data.rows import Broken, Columns, Fault, Row
from coalmine.protocol.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS = 65_536


def parquet_rows(path: Path, columns: Columns, where: str) -> Iterator[Row | Broken]:
    """Rows of a Parquet file, batch by batch.

    Raises:
        DataError: not a Parquet file or a damaged one, a missing column, or one of a type that cannot serve.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            wanted = fitting(file.schema_arrow, columns, where)
            names = [name for name in (wanted.user, wanted.text, wanted.label) if name is not None]
            yield from arrow_rows(file.iter_batches(_BATCH_ROWS, columns=names), wanted)
    except (pa.ArrowException, OSError) as error:
        raise DataError("this is not a readable Parquet file", where=where, remedy="write it anew") from error


def arrow_rows(
    batches: Iterable[pa.RecordBatch | pa.Table], columns: Columns, label_names: Sequence[str] | None = None
) -> Iterator[Row | Broken]:
    """Rows of record batches, counted from 1. ``label_names`` turns labels that are class numbers into their names."""
    place = 0
    for batch in batches:
        texts = _values(batch.column(columns.text))
        own = range(place + 1, place + 1 + len(texts))
        users = list(own) if columns.user is None else _values(batch.column(columns.user))
        labels = [None] * len(users) if columns.label is None else _values(batch.column(columns.label))
        for user, text, label in zip(users, texts, labels, strict=True):
            place += 1
            if _UNDECODABLE in (user, text, label):
                yield Broken(place, Fault.ENCODING)
            elif label_names is not None and isinstance(label, int):
                yield Row(place, user, text, label_names[label] if label >= 0 else None)
            else:
                yield Row(place, user, text, label)


def fitting(schema: pa.Schema, columns: Columns, where: str) -> Columns:
    """The columns that are there, if their types can serve.

    Raises:
        DataError: a column is missing, there twice, or of a type that cannot serve.
    """
    import pyarrow.types as types

    wanted = columns.resolve(schema.names, where)
    for name, is_right, allowed in (
        (
            wanted.user,
            lambda kind: _is_text(kind) or types.is_integer(kind) or types.is_floating(kind),
            "text or numbers",
        ),
        (wanted.text, _is_text, "text"),
        (wanted.label, lambda kind: not types.is_nested(kind) and not _is_bytes(kind), "single values"),
    ):
        if name is None:
            continue
        if schema.names.count(name) > 1:
            raise DataError(f"the column {name!r} is there twice", where=where, remedy="rename one of them")
        kind = schema.field(name).type
        if not is_right(kind.value_type if types.is_dictionary(kind) else kind):
            raise DataError(f"the column {name!r} holds {kind}", where=where, remedy=f"it must hold {allowed}")
    return wanted


class _Undecodable:
    """Stands for a string cell whose bytes are not UTF-8."""


_UNDECODABLE = _Undecodable()


def _values(column: pa.Array[Any] | pa.ChunkedArray[Any]) -> list[object]:
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        return [_value(cell) for cell in column]


def _value(cell: pa.Scalar[Any]) -> object:
    try:
        return cell.as_py()
    except UnicodeDecodeError:
        return _UNDECODABLE


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow.types as types

    # A column without any value has the type null; its rows are then reported one by one.
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind) or types.is_null(kind)


def _is_bytes(kind: pa.DataType) -> bool:
    import pyarrow.types as types

    return types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
