"""Users, their records, and the digest that names a data set."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from coalmine.protocol.errors import DataError

_ENCODING = b"coalmine users 1"


@dataclass(frozen=True)
class User:
    """One user and everything it holds.

    Attributes:
        id: not blank, unique in its table.
        records: texts in their original order.
        labels: one per record, "" where there is none.

    Raises:
        DataError: blank id, or labels that do not pair with the records.
    """

    id: str
    records: tuple[str, ...] = field(repr=False)
    labels: tuple[str, ...] = field(repr=False)

    def __post_init__(self) -> None:
        if not self.id.strip():
            raise DataError("a user id is blank", remedy="every user needs an id")
        if len(self.labels) != len(self.records):
            raise DataError(
                f"a user has {len(self.records)} records but {len(self.labels)} labels", remedy='one label each, or ""'
            )


@dataclass(frozen=True)
class UserTable:
    """The users of one source.

    Attributes:
        users: in order of first appearance; no two ids alike.
        source: where they come from, for people.
        dropped: records left out while reading because they were blank or not text.

    Raises:
        DataError: two users with one id.
    """

    users: tuple[User, ...]
    source: str
    dropped: int = 0

    def __post_init__(self) -> None:
        if len({user.id for user in self.users}) != len(self.users):
            raise DataError("two users have the same id", where=self.source, remedy="gather the records of one id")

    def __len__(self) -> int:
        return len(self.users)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) over users, records and labels. The order of users, which decides nothing, does not count."""
        digest = hashlib.sha256(_ENCODING)
        for user in sorted(self.users, key=lambda user: user.id):
            digest.update(b"".join(_canonical(user)))
        return digest.hexdigest()


def _canonical(user: User) -> Iterator[bytes]:
    """Length-prefixed UTF-8, so that no two tables share an encoding."""
    yield struct.pack("<Q", len(user.records))
    for part in (user.id, *user.records, *user.labels):
        data = part.encode()
        yield struct.pack("<Q", len(data))
        yield data
