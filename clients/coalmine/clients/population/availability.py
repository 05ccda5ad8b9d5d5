"""Who can be reached when: a public schedule, and a coin of one's own where the schedule leaves it open.

An availability says one thing: with what probability a user can be reached at a time, given everything public. It never
depends on other users, on who is drawn, or on how many are: so participation stays independent from user to user, and
nobody takes part with a probability above q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from coalmine.protocol.errors import StudyError
from coalmine.protocol.randomness import Purpose, uniform

_EVERY_ZONE = tuple((float(offset), 1.0) for offset in range(-11, 13))


class Availability(Protocol):
    """When a user can be reached."""

    def rate(self, key: bytes, time: int, user: str) -> float:
        """Probability in [0, 1] that the user can be reached in the round at this time.

        Args:
            key: places users in the schedule (their time zone), never tosses the coin.
            time: number of the round in the schedule, from 0.
        """
        ...


@dataclass(frozen=True)
class Always:
    """Everybody, in every round."""

    def rate(self, key: bytes, time: int, user: str) -> float:
        """1."""
        return 1.0


@dataclass(frozen=True)
class Independent:
    """Every user in every round with one probability.

    Attributes:
        probability: in [0, 1].

    Raises:
        StudyError: out of range.
    """

    probability: float

    def __post_init__(self) -> None:
        within("population.rate", self.probability, 0, 1)

    def rate(self, key: bytes, time: int, user: str) -> float:
        """The probability."""
        return self.probability


@dataclass(frozen=True)
class Diurnal:
    """A day's rhythm in each user's time zone: ``lowest`` to ``highest`` and back along a cosine.

    Attributes:
        lowest, highest: in [0, 1]. peak: local hour of the highest, in [0, 24).
        hours_per_round: > 0; round 0 is at 0 h UTC.
        zones: (offset from UTC in hours, weight > 0) pairs; each user belongs to one, by its weight, for good.

    Raises:
        StudyError: a value out of range.
    """

    lowest: float
    highest: float
    peak: float = 2.0
    hours_per_round: float = 1.0
    zones: tuple[tuple[float, float], ...] = _EVERY_ZONE

    def __post_init__(self) -> None:
        within("population.lowest", self.lowest, 0, 1)
        within("population.highest", self.highest, self.lowest, 1)
        within("population.peak_hour", self.peak, 0, math.nextafter(24, 0))
        within("population.hours_per_round", self.hours_per_round, 5e-324, 24 * 366)
        if not self.zones:
            raise StudyError("no time zone", where="population.zones", remedy="at least one offset and its weight")
        for offset, weight in self.zones:
            within("population.zones", offset, -12, 14)
            within("population.zones", weight, 5e-324, 1e9)

    def rate(self, key: bytes, time: int, user: str) -> float:
        """By the local hour at the user's."""
        hour = time * self.hours_per_round + self.zone(key, user)
        height = (1 + math.cos(2 * math.pi * (hour - self.peak) / 24)) / 2
        return min(1.0, self.lowest + (self.highest - self.lowest) * height)

    def zone(self, key: bytes, user: str) -> float:
        """The user's offset from UTC in hours."""
        left = uniform(key, Purpose.TIME_ZONE, 0, user) * math.fsum(weight for _, weight in self.zones)
        for offset, weight in self.zones:
            left -= weight
            if left < 0:
                return offset
        return self.zones[-1][0]


def within(key: str, value: float, low: float, high: float) -> None:
    """Raises:
    StudyError: not low <= value <= high.
    """
    if not low <= value <= high:
        raise StudyError(f"{value!r} is not allowed", where=key, remedy=f"needs a number from {low:g} to {high:g}")
