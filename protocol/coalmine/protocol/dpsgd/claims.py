"""What the accounting promises for the steps really taken. The filter changes nothing in it (see ``filter``)."""

from __future__ import annotations

import math
from dataclasses import replace

from coalmine.protocol import accounting
from coalmine.protocol.dpsgd.mechanism import DpSgd, Sampling
from coalmine.protocol.errors import StudyError
from coalmine.protocol.privacy import Adjacency, Assurance, Claim, Mechanism, PrivacyUnit, ThreatModel

_PRECISION = 1e-4
_MOST_NOISE = 1e4


def claim(mechanism: DpSgd, steps: int) -> Claim:
    """The promise for one sample, added or removed, after ``steps`` noised updates.

    PRV (the figure that papers print) and the PLD bracket (what audits are compared with), both for an attacker who
    sees every noised update. ``heuristic`` where batches were shuffled: the Poisson analysis does not cover them.

    Args:
        steps: noised updates released so far, empty batches included; 0 promises epsilon 0.

    Raises:
        StudyError: a value out of its range.
    """
    if steps < 0:
        raise StudyError(f"{steps} steps", where="steps", remedy="needs 0 or more")
    if steps == 0:
        return _nothing_released(mechanism)
    promised = accounting.claim(
        Mechanism(q=mechanism.q, sigma=mechanism.sigma, clip=mechanism.clip, delta=mechanism.delta),
        steps,
        PrivacyUnit.RECORD,
        ThreatModel.EVERY_UPDATE,
    )
    return promised if mechanism.sampling is Sampling.POISSON else replace(promised, assurance=Assurance.HEURISTIC)


def noise_multiplier(eps: float, q: float, steps: int, delta: float) -> float:
    """The smallest sigma (to 1e-4, rounded up) whose PRV epsilon after ``steps`` steps is at most ``eps``.

    Raises:
        StudyError: a value out of its range, or an epsilon that no noise below 10,000 reaches.
    """
    if not (eps > 0 and math.isfinite(eps)):
        raise StudyError(f"{eps!r} is not allowed", where="eps", remedy="needs an epsilon > 0")

    def enough(units: int) -> bool:
        reached = accounting.prv_epsilon(q, units * _PRECISION, steps, delta)
        return reached <= eps  # false where the accountant breaks down

    low, high = round(0.05 / _PRECISION), round(0.5 / _PRECISION)
    while not enough(high):
        low, high = high, 2 * high
        if high * _PRECISION > _MOST_NOISE:
            raise StudyError(f"no noise reaches epsilon {eps}", where="eps", remedy="allow a larger one")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return round(high * _PRECISION, 4)


def _nothing_released(mechanism: DpSgd) -> Claim:
    return Claim(
        0.0,
        0.0,
        0.0,
        mechanism.delta,
        mechanism.q,
        mechanism.sigma,
        0,
        Adjacency.ADD_REMOVE,
        PrivacyUnit.RECORD,
        ThreatModel.EVERY_UPDATE,
    )
