"""From rows of cells to users, with an account of every row that cannot be used.

What a cell may hold:

* A user id is text or a number (3 and 3.0 are the id "3"), not blank, free of control characters. Ids are compared as
  they stand: " a" and "a" are two users.
* A record is text that is not blank. A NUL marks binary data or UTF-16, so a record with one is bad; every other
  control character (tabs, line breaks, colour codes of chat programs) is content and stays.
* A label is any single value, as text; null, NaN and white space are "no label", "".
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

from coalmine.clients.data.users import User, UserTable
from coalmine.protocol.errors import DataError, nearest
from coalmine.protocol.unicode import is_unicode

OnBadRecord = Literal["error", "drop"]

PLACES_KEPT = 20
_INVISIBLE = re.compile(r"[\s\u200b-\u200f\u2060\ufeff]+")
"""White space and marks without width: a record of nothing else is blank."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Columns:
    """The names of the columns.

    Attributes:
        user: must exist; ``None`` makes every row a user of its own.
        text: must exist.
        label: ``None`` reads no labels. The default name may be missing from the data; any other name must exist.

    Raises:
        DataError: one column with two roles.
    """

    user: str | None = "user"
    text: str = "text"
    label: str | None = "label"

    def __post_init__(self) -> None:
        named = [name for name in (self.user, self.text, self.label) if name is not None]
        if len(set(named)) < len(named):
            raise DataError("one column has two roles", where=self.text, remedy="name different columns")

    def resolve(self, known: Collection[str], where: str, *, header: bool = False) -> Columns:
        """These columns as far as the data has them.

        Args:
            header: the names are the first line of a CSV file, see :func:`missing_column`.

        Raises:
            DataError: a column that must exist is missing.
        """
        names = set(known)
        asked_for = () if self.label in (None, Columns.label) else (self.label,)
        for name in (self.user, self.text, *asked_for):
            if name is not None and name not in names:
                raise missing_column(name, known, where, header=header)
        return self if self.label in names else Columns(self.user, self.text, None)


def missing_column(name: str, known: Collection[str], where: str, *, header: bool) -> DataError:
    """The error for a column that is not there, with the nearest known name.

    Args:
        header: the names are the first line of a CSV file. Where somebody forgot the header that is a private record,
            so its cells are counted and never quoted.
    """
    if header:
        return DataError(
            f"there is no column {name!r}; columns in the first line: {len(known)}",
            where=where,
            remedy="is the first line a header? it must name this column",
        )
    return DataError(f"there is no column {name!r}", where=where, remedy=nearest(name, set(known)))


class Row(NamedTuple):
    """Cells as they were read; ``place`` is a line of a text file or a row of a table, from 1."""

    place: int
    user: object
    text: object
    label: object


class Fault(StrEnum):
    """Why a row cannot be used."""

    ENCODING = "invalid UTF-8"
    JSON = "malformed JSON"
    NOT_OBJECT = "JSON that is not an object"
    QUOTING = "malformed CSV"
    FIELDS = "another number of fields than the header"
    NO_USER = "a missing or blank user id"
    BAD_USER = "a user id that is neither plain text nor a number"
    BLANK = "a missing or blank record"
    NOT_TEXT = "a record that is not text"
    NUL = "a record with a NUL character"
    LABEL = "a label that is not a single value"

    @property
    def droppable(self) -> bool:
        """Whether ``on_bad_record`` decides about it: the row is sound, its record is not."""
        return self in (Fault.BLANK, Fault.NOT_TEXT, Fault.NUL)


class Broken(NamedTuple):
    """A row that cannot be used. ``detail`` never quotes the row."""

    place: int
    fault: Fault
    detail: str = ""


@dataclass(frozen=True)
class Flaw:
    """All rows with one fault.

    Attributes:
        unit: "line" or "row".
        places: the first of them, at most ``PLACES_KEPT``.
        detail: of the first.
    """

    fault: Fault
    unit: str
    count: int
    places: tuple[int, ...]
    detail: str = ""

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.places[:5]))
        more = f" and {self.count - 5:,} more" if self.count > 5 else ""
        detail = f"; the first: {self.detail}" if self.detail else ""
        if self.count == 1:
            return f"{self.unit} {shown} has {self.fault}{f': {self.detail}' if self.detail else ''}"
        return f"{self.count:,} {self.unit}s have {self.fault} ({self.unit}s {shown}{more}{detail})"


@dataclass(frozen=True)
class Reading:
    """The users that could be read, and what could not."""

    table: UserTable
    flaws: tuple[Flaw, ...] = ()


def gather(rows: Iterable[Row | Broken], source: str, unit: str = "row") -> Reading:
    """Group rows into users, in order of first appearance; faulty rows are counted and left out."""
    gathered: dict[str, tuple[list[str], list[str]]] = {}
    broken: dict[Fault, list[Broken]] = {}
    counts: dict[Fault, int] = {}
    known_ids: dict[object, str] = {}
    for row in rows:
        read = row if isinstance(row, Broken) else read_row(row, known_ids)
        if isinstance(read, Broken):
            counts[read.fault] = counts.get(read.fault, 0) + 1
            if counts[read.fault] <= PLACES_KEPT:
                broken.setdefault(read.fault, []).append(read)
            continue
        user, text, label = read
        texts, labels = gathered.setdefault(user, ([], []))
        texts.append(text)
        labels.append(label)
    flaws = tuple(
        Flaw(fault, unit, counts[fault], tuple(one.place for one in first), first[0].detail)
        for fault, first in broken.items()
    )
    users = tuple(User(id, tuple(texts), tuple(labels)) for id, (texts, labels) in gathered.items())
    return Reading(UserTable(users, source, sum(flaw.count for flaw in flaws if flaw.fault.droppable)), flaws)


def accept(reading: Reading, on_bad_record: OnBadRecord) -> UserTable:
    """The table, if nothing is wrong with the data, or nothing but bad records that are to be dropped.

    Raises:
        DataError: rows that cannot be used, with the first places and the number of each fault; no record at all.
    """
    dropping = on_bad_record == "drop"
    serious = [flaw for flaw in reading.flaws if not (dropping and flaw.fault.droppable)]
    if serious:
        only_records = all(flaw.fault.droppable for flaw in serious)
        raise DataError(
            "; ".join(map(str, serious)),
            where=reading.table.source,
            remedy="mend them (a study can drop them: on_bad_record: drop)" if only_records else "mend the data",
        )
    if not reading.table.users:
        raise DataError("there is no record", where=reading.table.source, remedy="one row per record is needed")
    return reading.table


def read_row(row: Row, known_ids: dict[object, str]) -> tuple[str, str, str] | Broken:
    """User id, text and label of a row, or what is wrong with it; ``known_ids`` spares checking an id again."""
    place, raw_user, text, raw_label = row
    # Keyed by type as well, because True == 1 == 1.0 in a dictionary.
    user = known_ids.get((raw_user, type(raw_user))) if isinstance(raw_user, str | int | float) else None
    if user is None:
        checked = _user_id(raw_user)
        if isinstance(checked, Fault):
            return Broken(place, checked)
        user = known_ids[raw_user, type(raw_user)] = checked
    fault = _record_fault(text)
    if fault is not None:
        return Broken(place, fault)
    label = _label(raw_label)
    if label is None:
        return Broken(place, Fault.LABEL)
    assert isinstance(text, str)
    return user, text, label


def _user_id(value: object) -> str | Fault:
    if value is None or value != value:
        return Fault.NO_USER
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value in (math.inf, -math.inf):
        return Fault.BAD_USER
    text = value if isinstance(value, str) else _number(value)
    if not text.strip():
        return Fault.NO_USER
    return text if _CONTROL.search(text) is None and is_unicode(text) else Fault.BAD_USER


def _record_fault(value: object) -> Fault | None:
    if value is None or value == "":
        return Fault.BLANK
    if not isinstance(value, str):
        return Fault.NOT_TEXT
    if not _INVISIBLE.sub("", value):
        return Fault.BLANK
    if "\x00" in value:
        return Fault.NUL
    return None if is_unicode(value) else Fault.NOT_TEXT


def _label(value: object) -> str | None:
    """The label as text, ``None`` if it is not a single value."""
    if value is None or value != value:
        return ""
    if isinstance(value, str):
        return (value if is_unicode(value) else None) if value.strip() else ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return _number(value)
    return None if isinstance(value, bytes | list | tuple | dict) else str(value)


def _number(value: int | float) -> str:
    """3.0 reads "3": a column of whole numbers becomes one of floats as soon as one value is missing."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
