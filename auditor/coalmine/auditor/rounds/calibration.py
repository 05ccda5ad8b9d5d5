"""The threshold on the summed score of every prefix, from calibration users on the same banks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.calibration import expected_bound
from coalmine.auditor.cohorts import Array
from coalmine.auditor.eps_bound import Terms
from coalmine.auditor.exact import Rates
from coalmine.auditor.rounds.composition import SumLaw
from coalmine.protocol.errors import StudyError

_COARSE = 257


@dataclass(frozen=True)
class SumThreshold:
    """A decision ``S > value`` after some rounds, fixed before any test user is looked at.

    Attributes:
        value: threshold on the summed ``ell_mix``.
        tpr, fpr: rates of the decision on the population that the calibration users stand for.
        eps_expected: the Clopper-Pearson bound there if both counts came out as expected.
    """

    value: float
    tpr: float
    fpr: float
    eps_expected: float


def calibrate(laws: Sequence[SumLaw], trials: int, terms: Terms) -> tuple[SumThreshold, ...]:
    """Per prefix the threshold at which ``trials`` trials per hypothesis are expected to certify most.

    Args:
        laws: of the prefixes, composed among calibration users that stand for N (``ScoredRound.standing_in``). The law
            there is exact up to the grid, so nothing is drawn.
        trials, terms: of the test that will use the thresholds.

    Raises:
        StudyError: trials or alpha out of range.
    """
    if trials < 1:
        raise StudyError(f"{trials} trials", where="audit.trials", remedy="needs at least one trial")
    gamma, found = terms.gamma, []
    for law in laws:
        levels = law.points + law.step / 2
        rates = law.rates(levels)

        def expected(at: NDArray[np.int64], rates: Rates = rates) -> Array:
            some = Rates(rates.tpr[at], rates.fpr[at], rates.error)
            return expected_bound(some, trials, terms.delta, gamma)

        coarse = np.unique(np.linspace(0, len(levels) - 1, _COARSE).astype(np.int64))
        near = int(np.argmax(expected(coarse)))
        fine = np.arange(coarse[max(0, near - 1)], coarse[min(len(coarse) - 1, near + 1)] + 1)
        values = expected(fine)
        best = int(fine[np.argmax(values)])
        found.append(
            SumThreshold(float(levels[best]), float(rates.tpr[best]), float(rates.fpr[best]), float(values.max()))
        )
    return tuple(found)
