"""Availability as it was observed: a file that says who could be reached in which rounds.

CSV with a header, or JSONL, with the fields ``user`` and either ``round`` or ``from`` and ``to`` (both included).
Rounds count from 0. A user that the file does not name is never available. The clients of federated training are called
``client 0``, ``client 1``, ...
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coalmine.protocol.errors import DataError

_LAST = 2**62
_FORMS = ("round", "user"), ("from", "to", "user")
_WHOLE = re.compile(r"[0-9]{1,19}")


@dataclass(frozen=True)
class Trace:
    """An ``Availability`` from observed windows.

    Attributes:
        windows: for each user disjoint (first, last) rounds, ascending, both included.
        source: the file, for messages.
    """

    windows: Mapping[str, tuple[tuple[int, int], ...]] = field(repr=False)
    source: str

    def rate(self, key: bytes, time: int, user: str) -> float:
        """1 within a window of the user's, else 0."""
        windows = self.windows.get(user, ())
        place = bisect_right(windows, (time, _LAST)) - 1
        return float(place >= 0 and time <= windows[place][1])

    @property
    def digest(self) -> str:
        """Names the windows without telling them."""
        return hashlib.sha256(json.dumps(sorted(self.windows.items())).encode()).hexdigest()[:16]

    def check(
        self, users: Sequence[str], kind: str = "voting users", named: str = "user ids of the study's data"
    ) -> None:
        """Raises:
        DataError: the trace names none of these users.
        """
        if not any(user in self.windows for user in users):
            raise DataError(
                f"the trace names none of the study's {len(users)} {kind}",
                where=self.source,
                remedy=f"the field user holds {named}",
            )


def read_trace(path: Path) -> Trace:
    """Read a trace.

    Raises:
        DataError: unreadable, of another kind, empty, or malformed: the line and the field are named.
    """
    read = {".csv": _csv_rows, ".jsonl": _json_rows}.get(path.suffix.lower())
    if read is None:
        raise DataError("the trace is neither .csv nor .jsonl", where=str(path), remedy="save it as one of them")
    found: dict[str, list[tuple[int, int]]] = {}
    try:
        for line, row in read(path):
            user, first, last = _window(row, f"{path}, line {line}")
            found.setdefault(user, []).append((first, last))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", where=str(path), remedy="check population.trace") from None
    except UnicodeDecodeError:
        raise DataError("is not valid UTF-8", where=str(path), remedy="save it as UTF-8") from None
    if not found:
        raise DataError("the trace is empty", where=str(path), remedy="at least one user and round")
    return Trace({user: _merge(windows) for user, windows in found.items()}, str(path))


def _csv_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, strict=True)
        header: list[str] | None = None
        while True:
            try:
                row = next(rows, None)
            except csv.Error as error:
                raise DataError(f"malformed CSV: {error}", where=f"{path}, line {rows.line_num}") from None
            if row is None:
                return
            if header is None:
                header = [name.strip() for name in row]
                if tuple(sorted(header)) not in _FORMS:
                    raise DataError("the header does not name the fields", where=f"{path}, line 1", remedy=_forms())
            elif row and len(row) != len(header):
                raise DataError(
                    f"{len(row)} fields, the header has {len(header)}",
                    where=f"{path}, line {rows.line_num}",
                    remedy=", ".join(header),
                )
            elif row:
                yield rows.line_num, dict(zip(header, row, strict=True))


def _json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                raise DataError("malformed JSON", where=where, remedy=_forms()) from None
            if not isinstance(row, dict) or tuple(sorted(row)) not in _FORMS:
                raise DataError("the object does not have the fields", where=where, remedy=_forms())
            yield number, row


def _window(row: Mapping[str, Any], where: str) -> tuple[str, int, int]:
    user = row["user"]
    if not isinstance(user, str) or not user.strip():
        raise DataError("field 'user' is not a user id", where=where, remedy="needs text that is not blank")
    if "round" in row:
        first = last = _round(row, "round", where)
    else:
        first, last = _round(row, "from", where), _round(row, "to", where)
    if first > last:
        raise DataError("field 'to' lies before field 'from'", where=where, remedy="needs from <= to")
    return user, first, last


def _round(row: Mapping[str, Any], name: str, where: str) -> int:
    """The value itself is not quoted: where fields were mixed up it is somebody's id."""
    value = row[name]
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LAST:
        raise DataError(f"field {name!r} is not a round", where=where, remedy="needs a whole number from 0")
    return value


def _merge(windows: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(windows):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)


def _forms() -> str:
    return "needs the fields user and round, or user, from and to"
