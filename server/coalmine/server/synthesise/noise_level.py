"""How much noise a promise needs."""

from __future__ import annotations

import math

from coalmine.protocol.accounting import claim, prv_epsilon
from coalmine.protocol.errors import StudyError
from coalmine.protocol.privacy import Claim, Mechanism, ThreatModel
from coalmine.server.synthesise.recipe import Budget

_LEAST, _MOST = 0.3, 100.0
_PRECISION = 1e-3


def noise_level(budget: Budget, units: int) -> tuple[Mechanism, Claim]:
    """The least noise, to 0.1 %, that keeps ``budget.epsilon`` in both readings of the accounting.

    Opacus' PRV accountant is inverted by bisection; dp-accounting's pessimistic value is then checked too.

    Args:
        units: users (or records) of the training split. The number counts as public, as the sampling rate shows it.

    Raises:
        StudyError: not even a noise multiplier of 100 would do.
    """
    q = min(1.0, budget.batch / units)

    def promised(sigma: float) -> float:
        found = prv_epsilon(q, sigma, budget.steps, budget.delta)
        return math.inf if math.isnan(found) else found

    low, high = _LEAST, _LEAST
    while promised(high) > budget.epsilon:
        low, high = high, 2 * high
        if high > _MOST:
            raise StudyError(
                f"epsilon {budget.epsilon:g} at delta {budget.delta:g} cannot be kept over {budget.steps} steps",
                where="epsilon",
                remedy="fewer steps, a smaller batch or a larger epsilon",
            )
    while high / low > 1 + _PRECISION:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if promised(middle) > budget.epsilon else (low, middle)
    while True:
        mechanism = Mechanism(
            q=q, sigma=high, clip=budget.clip, delta=budget.delta, max_records=budget.max_records, votes_per_record=1
        )
        made = claim(mechanism, budget.steps, budget.unit, ThreatModel.EVERY_UPDATE)
        if made.eps_pld_upper <= budget.epsilon:
            return mechanism, made
        high *= 1 + _PRECISION
