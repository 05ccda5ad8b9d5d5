"""One round as its audit sees it. A path is a sequence of them, audited at every prefix.

Given the banks that came out, rounds are independent: participation and noise are drawn anew in each. The score of a
prefix is ``S = sum_t ell_mix_t`` (paper, E.5). Since banks depend on earlier releases, whatever is computed along one
path is *conditional on its banks*.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coalmine.auditor.background import Array
from coalmine.auditor.calibration import multiplicities
from coalmine.auditor.cohorts import check_score
from coalmine.auditor.score import Score
from coalmine.protocol.errors import DataError, StudyError

CONDITIONAL = "conditional on the banks"
"""How every number along one path is labelled."""


@dataclass(frozen=True)
class ScoredRound:
    """``T = sum_u J_u s_u + J shift + Normal(0, tau^2)``, and ``ell_mix`` as a function of T.

    Attributes:
        score: of the canary on this round's bank, designed on auxiliary users.
        projections: (N,) ``s_u = a^T c_u`` of the users in the background; those that are 0 cost nothing.
        shift: what the canary adds to T when it takes part: ``score.signal``, or 0 for one that never does.

    Raises:
        StudyError: a projection that is not finite, a shift below 0, or a score without noise (no vote of the canary).
    """

    score: Score
    projections: Array
    shift: float

    def __post_init__(self) -> None:
        check_score(self.projections, self.shift, self.score.noise_std, self.score.q)
        if self.shift < 0:
            raise StudyError(f"{self.shift!r} is not allowed", where="shift", remedy="needs a number >= 0")

    @classmethod
    def among(cls, score: Score, votes: Array) -> ScoredRound:
        """The round among users with the given (N, r) clipped votes."""
        return cls(score, score.project(votes), score.signal)

    @classmethod
    def standing_in(cls, score: Score, votes: Array, population: int) -> ScoredRound:
        """The round among N users that (n, r) calibration users stand for, each for several.

        Raises:
            DataError: no calibration user.
        """
        if len(votes) == 0:
            raise DataError(
                "no calibration user", where="calibration", remedy="split off at least one user for calibration"
            )
        return cls(score, np.repeat(score.project(votes), multiplicities(population, len(votes))), score.signal)

    def ell_mix(self, statistics: Array) -> Array:
        """``ell_mix`` of values of T, elementwise."""
        return self.score.mix(statistics - self.score.offset)

    def statistic(self, ell_mix: Array) -> Array:
        """The value of T with this ``ell_mix``, elementwise; ``-inf`` at and below ``log(1-q)``, which no T reaches."""
        q = self.score.q
        values = np.asarray(ell_mix, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            far = np.log1p(-(1 - q) * np.exp(-np.maximum(values, 1.0))) + values - math.log(q)
            near = np.log1p(np.maximum(np.expm1(np.minimum(values, 1.0)) / q, -1.0))
        return np.where(values > 1, far, near if q < 1 else values) + self.score.offset

    @property
    def least(self) -> float:
        """No ``ell_mix`` of this round lies below it: ``log(1-q)``."""
        return math.log1p(-self.score.q) if self.score.q < 1 else -math.inf


def check_path(path: Sequence[ScoredRound]) -> None:
    """Refuse a path without a round.

    Raises:
        StudyError: no round.
    """
    if not path:
        raise StudyError(
            "no round to audit", where="rounds", remedy="needs at least one round that the canary votes in"
        )
