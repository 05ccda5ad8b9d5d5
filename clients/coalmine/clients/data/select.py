"""Which of a user's records count."""

from __future__ import annotations

from collections.abc import Sequence

from coalmine.clients.data.users import User
from coalmine.protocol.randomness import Purpose, stream


def distinct_records(user: User) -> int:
    """How many different texts a user holds."""
    return len(set(user.records))


def distinct(user: User) -> User:
    """The user with the first occurrence of every text only."""
    first = {text: index for index, text in reversed(list(enumerate(user.records)))}
    return _keep(user, sorted(first.values()))


def cap(user: User, max_records: int, seed: int) -> User:
    """The user with at most ``max_records`` (m >= 1) records, chosen uniformly, in their original order.

    The choice depends on the seed, the user's id and its number of records only.
    """
    if len(user.records) <= max_records:
        return user
    chosen = stream(seed, Purpose.RECORDS, user=user.id).choice(len(user.records), max_records, replace=False)
    return _keep(user, sorted(chosen.tolist()))


def _keep(user: User, indices: Sequence[int]) -> User:
    return User(user.id, tuple(user.records[i] for i in indices), tuple(user.labels[i] for i in indices))
