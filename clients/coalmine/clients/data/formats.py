"""Rows of the two text formats. Both stream, both know the line of everything that is wrong, both skip blank lines.

UTF-8, with or without a byte-order mark.
"""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Iterable, Iterator

from coalmine.clients.data.rows import Broken, Columns, Fault, Row
from coalmine.protocol.errors import DataError


class _Twice(Exception):
    """A name occurs twice: which value counts would be a guess, and with user ids a wrong one."""


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _Twice
    return value


def jsonl_rows(lines: Iterable[bytes], columns: Columns, where: str) -> Iterator[Row | Broken]:
    """One JSON object per line; a key that a line lacks counts as null.

    Raises:
        DataError: no line is filled, or a column occurs in no object (found at the end).
    """
    empty = True
    keys: set[str] = set()
    label = columns.label or ""
    for place, raw in enumerate(_without_mark(lines), start=1):
        if raw.isspace():
            continue
        empty = False
        try:
            value = json.loads(raw.decode().rstrip("\r\n"), object_pairs_hook=_once)
        except UnicodeDecodeError as error:
            yield Broken(place, Fault.ENCODING, f"at byte {error.start + 1} of the line")
            continue
        except json.JSONDecodeError as error:
            yield Broken(place, Fault.JSON, f"{error.msg.removesuffix(' at')} at column {error.colno}")
            continue
        except _Twice:
            yield Broken(place, Fault.JSON, "a name occurs twice in one object")
            continue
        except (ValueError, RecursionError):
            yield Broken(place, Fault.JSON, "a number or a nesting beyond all measure")
            continue
        if not isinstance(value, dict):
            yield Broken(place, Fault.NOT_OBJECT)
            continue
        keys.update(value)
        user = value.get(columns.user) if columns.user is not None else place
        yield Row(place, user, value.get(columns.text), value.get(label) if columns.label else None)
    if empty:
        raise DataError("the file is empty", where=where, remedy="one JSON object per line is needed")
    if keys:
        columns.resolve(keys, where)


def csv_rows(lines: Iterable[bytes], columns: Columns, where: str) -> Iterator[Row | Broken]:
    """Comma-separated with a header; quoted fields may hold line breaks. A row's place is the line it starts on.

    Raises:
        DataError: no line is filled, the header lacks a column or has it twice, or the header itself is unreadable.
    """
    records = _csv_records(lines)
    header = next(records, None)
    if header is None:
        raise DataError("the file is empty", where=where, remedy="a header and one row per record are needed")
    if isinstance(header, Broken):
        raise DataError(f"the header has {header.fault}", where=f"{where}, line {header.place}", remedy=header.detail)
    names = header[1]
    wanted = columns.resolve(names, where, header=True)
    for name in (wanted.user, wanted.text, wanted.label):
        if name is not None and names.count(name) > 1:
            raise DataError(f"the header has the column {name!r} twice", where=where, remedy="rename one of them")
    user = None if wanted.user is None else names.index(wanted.user)
    text = names.index(wanted.text)
    label = None if wanted.label is None else names.index(wanted.label)
    for record in records:
        if isinstance(record, Broken):
            yield record
            continue
        place, fields = record
        if len(fields) != len(names):
            yield Broken(place, Fault.FIELDS, f"{len(fields)} instead of {len(names)}")
            continue
        yield Row(
            place,
            place if user is None else fields[user],
            fields[text],
            None if label is None else fields[label],
        )


def _csv_records(lines: Iterable[bytes]) -> Iterator[tuple[int, list[str]] | Broken]:
    """Every record with the line it starts on, the header among them."""
    undecodable: dict[int, str] = {}
    reader = csv.reader(_decoded(lines, undecodable), strict=True)
    while True:
        start = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            undecodable.clear()
            yield Broken(start, Fault.QUOTING, f"{error}")
            continue
        if undecodable:
            line, detail = next(iter(undecodable.items()))
            undecodable.clear()
            yield Broken(line, Fault.ENCODING, detail)
        elif fields:
            yield start, fields


def _decoded(lines: Iterable[bytes], undecodable: dict[int, str]) -> Iterator[str]:
    """Lines as text. One that is not UTF-8 is noted and passed on disfigured, so that the reader can find its end."""
    for place, raw in enumerate(_without_mark(lines), start=1):
        try:
            yield raw.decode()
        except UnicodeDecodeError as error:
            undecodable[place] = f"at byte {error.start + 1} of the line"
            yield raw.decode(errors="replace")


def _without_mark(lines: Iterable[bytes]) -> Iterator[bytes]:
    for index, raw in enumerate(lines):
        yield raw.removeprefix(codecs.BOM_UTF8) if index == 0 else raw
