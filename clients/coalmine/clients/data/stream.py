"""Records of files that do not fit in memory: read as often as needed, one row at a time.

The first reading checks every row and learns who is there; later ones only repeat what it has seen.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coalmine.clients.data.files import FileSource, rows_of
from coalmine.clients.data.rows import PLACES_KEPT, Broken, Fault, Flaw, Reading, Row, accept, read_row
from coalmine.clients.data.users import User, UserTable
from coalmine.protocol.errors import DataError

_CELL_LIMIT = 2**31 - 1
"""Characters of a CSV cell; the library's own limit of 131,072 is meant for untrusted input of other kinds."""
_EVERY = 1024


class Record(NamedTuple):
    """One record. ``user``: index into the survey's users, in order of first appearance."""

    user: int
    text: str


@dataclass(frozen=True)
class Survey:
    """What one reading of a file has learnt.

    Attributes:
        source: the file; without a user column every row is a user.
        users: ids by index; empty without a user column.
        user_count, records: how many there are. dropped: bad records that are left out.
        digests: (records,) 64-bit digests of the texts, to count duplicates.
        labels: (user_count,) the first label of each user that is not blank, "" without.
    """

    source: FileSource
    users: dict[str, int]
    user_count: int
    records: int
    dropped: int
    digests: NDArray[np.uint64]
    labels: tuple[str, ...]
    state: tuple[int, int]


def survey(source: FileSource, advance: Callable[[int], None] = lambda _: None) -> Survey:
    """Read a file once and check every row.

    Raises:
        DataError: as ``files.read_file``: nothing can be read, rows that cannot be used, no record.
    """
    state = _state(source)
    users: dict[str, int] = {}
    labels: list[str] = []
    digests = bytearray()
    first: dict[Fault, list[Broken]] = {}
    counts: dict[Fault, int] = {}
    known: dict[object, str] = {}
    for row in _rows(source):
        read = row if isinstance(row, Broken) else read_row(row, known)
        if isinstance(read, Broken):
            counts[read.fault] = counts.get(read.fault, 0) + 1
            if counts[read.fault] <= PLACES_KEPT:
                first.setdefault(read.fault, []).append(read)
            continue
        user, text, label = read
        index = len(labels) if source.columns.user is None else users.setdefault(user, len(users))
        if index == len(labels):
            labels.append(label)
        elif label and not labels[index]:
            labels[index] = label
        digests += hashlib.blake2b(text.encode(), digest_size=8).digest()
        if len(digests) % (8 * _EVERY) == 0:
            advance(_EVERY)
        if source.columns.user is None:
            known.clear()
    unit = "row" if source.path.suffix.lower() == ".parquet" else "line"
    flaws = tuple(
        Flaw(fault, unit, counts[fault], tuple(one.place for one in some), some[0].detail)
        for fault, some in first.items()
    )
    # Only whether there is any user matters to `accept`.
    table = UserTable((User("any", (), ()),) if labels else (), source.path.name)
    accept(Reading(table, flaws), source.on_bad_record)
    return Survey(
        source,
        users,
        len(labels),
        len(digests) // 8,
        sum(flaw.count for flaw in flaws),
        np.frombuffer(bytes(digests), np.uint64),
        tuple(labels),
        state,
    )


def records(seen: Survey) -> Iterator[Record]:
    """The records of a surveyed file, in its order.

    Raises:
        DataError: the file has changed since the survey.
    """
    source, index = seen.source, 0
    if _state(source) != seen.state:
        raise DataError("the file changed while it was read", where=str(source.path), remedy="leave it alone meanwhile")
    known: dict[object, str] = {}
    for row in _rows(source):
        read = row if isinstance(row, Broken) else read_row(row, known)
        if isinstance(read, Broken):
            continue
        user, text, _ = read
        if source.columns.user is None:
            known.clear()
            yield Record(index, text)
        else:
            yield Record(seen.users[user], text)
        index += 1


def _rows(source: FileSource) -> Iterator[Row | Broken]:
    csv.field_size_limit(max(csv.field_size_limit(), _CELL_LIMIT))
    return rows_of(source)


def _state(source: FileSource) -> tuple[int, int]:
    """Size and time of the last change; zeros where there is no file, which the reader reports better."""
    try:
        status = source.path.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns
