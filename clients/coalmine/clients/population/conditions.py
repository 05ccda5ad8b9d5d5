"""What may come between a user that is drawn and a vote that counts.

    drawn (Poisson, q)  ->  reachable (availability)  ->  does not drop out  ->  answers before the deadline  ->  counts

Every step is a coin of (key, purpose, round, user). No step looks at another user or at a count: there is no quota, no
"first hundred answers", no round that waits for enough. A late answer is thrown away, never moved to another round.

Given who would answer in a round, users still take part independently, each with probability q or 0. So the claim for
q holds whatever the schedule, even for an attacker who knows who would answer, and is conservative for all who would
not. The coins below are those of the round in the schedule: repeating a round draws participation anew, while the same
users would answer. Replays and exact values are of that round: *given who would answer in it*.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from coalmine.clients.population.availability import Always, Availability, within
from coalmine.protocol.randomness import Purpose, happens


@dataclass(frozen=True)
class Deadline:
    """Answers take a log-normal time; what comes after the deadline does not count.

    Attributes:
        after: > 0, when the round closes; a fixed time, never a number of answers.
        median: > 0, of the answering time, in the unit of ``after``.
        spread: >= 0, standard deviation of its logarithm.

    Raises:
        StudyError: a value out of range.
    """

    after: float
    median: float = 1.0
    spread: float = 1.0

    def __post_init__(self) -> None:
        within("population.deadline", self.after, 1e-300, 1e300)
        within("population.median_delay", self.median, 1e-300, 1e300)
        within("population.spread_delay", self.spread, 0, 100)

    @property
    def on_time(self) -> float:
        """Probability of an answer before the deadline."""
        distance = math.log(self.after) - math.log(self.median)
        if self.spread == 0:
            return float(distance >= 0)
        return NormalDist().cdf(distance / self.spread)


@dataclass(frozen=True)
class Conditions:
    """How clients come and go.

    Attributes:
        availability: who can be reached when.
        dropout: in [0, 1], probability that a reachable user that was drawn never answers.
        deadline: ``None``: a round waits for every answer.

    Raises:
        StudyError: a value out of range.
    """

    availability: Availability = field(default_factory=Always)
    dropout: float = 0.0
    deadline: Deadline | None = None

    def __post_init__(self) -> None:
        within("population.dropout", self.dropout, 0, 1)

    @property
    def ideal(self) -> bool:
        """Whether everybody would always answer."""
        return self == Conditions()

    def answers(self, key: bytes, time: int, user: str) -> bool:
        """Whether the user, if drawn, would answer in time in this round of the schedule."""
        return (
            happens(key, Purpose.AVAILABILITY, time, user, self.availability.rate(key, time, user))
            and not happens(key, Purpose.DROPOUT, time, user, self.dropout)
            and (self.deadline is None or happens(key, Purpose.DELAY, time, user, self.deadline.on_time))
        )

    def answering(self, key: bytes, time: int, users: Sequence[str]) -> NDArray[np.bool_]:
        """(n,) ``answers`` for many users."""
        if self.ideal:
            return np.ones(len(users), bool)
        return np.fromiter((self.answers(key, time, user) for user in users), bool, len(users))
