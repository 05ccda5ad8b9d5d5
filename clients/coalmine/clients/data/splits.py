"""Disjoint groups of users: nothing about test users may influence design or threshold."""

from __future__ import annotations

from dataclasses import dataclass

from coalmine.clients.data.select import cap, distinct, distinct_records
from coalmine.clients.data.users import User, UserTable
from coalmine.protocol.errors import DataError
from coalmine.protocol.randomness import Purpose, stream


@dataclass(frozen=True)
class SplitSizes:
    """Numbers of users, each >= 0.

    Attributes:
        aux: design (moments, greedy selection).
        calibration: threshold.
        test: evaluation only, N.
        canaries: audited users.

    Raises:
        DataError: a negative number.
    """

    aux: int
    calibration: int
    test: int
    canaries: int

    def __post_init__(self) -> None:
        for name, size in (
            ("aux", self.aux),
            ("calibration", self.calibration),
            ("test", self.test),
            ("canaries", self.canaries),
        ):
            if size < 0:
                raise DataError(f"a split of {size} users", where=name, remedy="0 or more")


@dataclass(frozen=True)
class Splits:
    """Disjoint users, in drawn order."""

    aux: tuple[User, ...]
    calibration: tuple[User, ...]
    test: tuple[User, ...]
    canaries: tuple[User, ...]


def split_users(
    table: UserTable, sizes: SplitSizes, min_records: int, max_records: int, canary_records: int, seed: int
) -> Splits:
    """Draw the canaries, then the other groups from whoever is left.

    Users are shuffled once, from the order of their ids: membership does not depend on the order of the source.

    Args:
        min_records: different records an ordinary user needs, >= 1.
        max_records: cap m on a user's records, >= 1.
        canary_records: different records a canary needs and keeps exactly, in [1, m].

    Raises:
        DataError: a number out of its range, or too few users (says how many are there and how many are needed).
    """
    for name, value in (("min_records", min_records), ("max_records", max_records), ("canary_records", canary_records)):
        if value < 1:
            raise DataError(f"{value} records", where=name, remedy="at least 1")
    if canary_records > max_records:
        raise DataError(
            f"canaries are to hold {canary_records} records, but a user's are capped at {max_records}",
            where="canary_records",
            remedy="at most max_records",
        )
    by_id = sorted(table.users, key=lambda user: user.id)
    shuffled = [by_id[index] for index in stream(seed, Purpose.SPLIT).permutation(len(by_id))]
    variety = {user.id: distinct_records(user) for user in shuffled}

    able = [user for user in shuffled if variety[user.id] >= canary_records]
    lower = "set audit.canaries or audit.canary_records lower"
    _require(len(able), sizes.canaries, canary_records, "canaries", table.source, lower)
    canaries = able[: sizes.canaries]

    taken = {user.id for user in canaries}
    others = [user for user in shuffled if user.id not in taken and variety[user.id] >= min_records]
    needed = sizes.aux + sizes.calibration + sizes.test
    what = f"the splits (auxiliary {sizes.aux}, calibration {sizes.calibration}, test {sizes.test})"
    lower = "set data.auxiliary, data.calibration, data.test or data.min_records lower"
    _require(len(others), needed, min_records, what, table.source, lower, after=len(canaries))

    capped = [cap(user, max_records, seed) for user in others[:needed]]
    return Splits(
        aux=tuple(capped[: sizes.aux]),
        calibration=tuple(capped[sizes.aux : sizes.aux + sizes.calibration]),
        test=tuple(capped[sizes.aux + sizes.calibration :]),
        canaries=tuple(cap(distinct(user), canary_records, seed) for user in canaries),
    )


def _require(there: int, needed: int, records: int, what: str, source: str, remedy: str, after: int = 0) -> None:
    if there < needed:
        left = f" besides the {after} canaries" if after else ""
        raise DataError(
            f"{what} need {needed:,} users with at least {records} different records, but {there:,} are there{left}",
            where=source,
            remedy=remedy,
        )
