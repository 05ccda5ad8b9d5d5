"""How users came into train and holdout. Tests are exact for randomised assignment only, so it must be declared."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from coalmine.protocol.errors import DataError, StudyError
from coalmine.protocol.privacy import Adjacency, Assurance

_IMPLAUSIBLE = 1e-6
"""Split sizes that a declared rate would give this seldom contradict the declaration."""


class AssignmentKind(StrEnum):
    """BERNOULLI: every user on its own coin with probability p. FIXED_SIZE: so many of all users, drawn at random.

    UNKNOWN: a convenience split; tests treat it as BERNOULLI with the realised rate, and prove nothing.
    """

    BERNOULLI = "bernoulli"
    FIXED_SIZE = "fixed-size"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Assignment:
    """The declared assignment of ``users`` of whom ``train`` are in the training split.

    Attributes:
        p: rate of inclusion in (0, 1).

    Raises:
        StudyError: a rate or sizes out of their range.
    """

    kind: AssignmentKind
    p: float
    users: int
    train: int

    def __post_init__(self) -> None:
        if not 0 < self.p < 1:
            raise StudyError(f"{self.p!r} is not allowed", where="p", remedy="needs an inclusion rate in (0, 1)")
        if not 0 <= self.train <= self.users:
            raise StudyError(f"{self.train} of {self.users} users in train", where="train", remedy="needs 0 to n")

    @property
    def log_odds(self) -> float:
        return math.log(self.p) - math.log1p(-self.p)

    @property
    def assurance(self) -> Assurance:
        """What a p-value or a bound proves under this assignment."""
        return Assurance.HEURISTIC if self.kind is AssignmentKind.UNKNOWN else Assurance.FORMAL

    @property
    def adjacency(self) -> Adjacency:
        """Which epsilon the tests bound: a user's coin adds or removes it, a fixed size exchanges two users."""
        return Adjacency.REPLACE_ONE if self.kind is AssignmentKind.FIXED_SIZE else Adjacency.ADD_REMOVE

    def given(self, train: NDArray[np.bool_], revealed: NDArray[np.bool_]) -> Assignment:
        """The assignment of the other users once that of the ``revealed`` ones, (n,) like ``train``, is known."""
        rest = ~revealed
        users, inside = int(rest.sum()), int(train[rest].sum())
        p = inside / users if self.kind is AssignmentKind.FIXED_SIZE and 0 < inside < users else self.p
        return Assignment(self.kind, p, users, inside)


def declare(kind: AssignmentKind, p: float | None, train: NDArray[np.bool_]) -> Assignment:
    """The assignment that an auditor declares, checked against the sizes of the splits.

    Args:
        p: ``None`` is 1/2 for BERNOULLI and the realised rate otherwise; must be left out for FIXED_SIZE.
        train: (n,) who is in train.

    Raises:
        DataError: an empty split; sizes that the rate would give with probability below 1e-6.
        StudyError: a rate out of its range or beside a fixed size.
    """
    users, inside = len(train), int(train.sum())
    for name, size in (("train", inside), ("holdout", users - inside)):
        if size == 0:
            raise DataError("there is no user", where=name, remedy="both splits need users")
    if kind is AssignmentKind.FIXED_SIZE and p is not None:
        raise StudyError("a fixed-size split has no rate", where="p", remedy="leave it out, or declare bernoulli")
    declared = 0.5 if p is None and kind is AssignmentKind.BERNOULLI else inside / users if p is None else p
    assignment = Assignment(kind, declared, users, inside)
    if kind is AssignmentKind.BERNOULLI and binomtest(inside, users, declared).pvalue < _IMPLAUSIBLE:
        said = "the default inclusion rate" if p is None else "the declared inclusion rate"
        raise DataError(
            f"{inside:,} of {users:,} users are in train, which {said} {declared:g} would hardly ever give",
            where="p",
            remedy="give the true rate, or declare a fixed-size or an unknown assignment",
        )
    return assignment
