"""What a test that did not reject could have seen: the excess that is still possible, and how many users were needed.

Reading of an excess: a share tau of the matches is there *because* their holder was in train; the rest are phantoms,
whose holder is in train with probability p. Holders of a match are then in train at the rate p + (1 - p) tau.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import logit, ndtri

from coalmine.auditor.disclosure.weighted_sum import Weights, log_upper_tail

POWER = 0.8
"""Chance of being found from which an excess counts as detectable."""
TOLERATED = 0.5
"""A test that could not have found this excess had too little evidence to speak of."""


@dataclass(frozen=True)
class Power:
    """What the matches at hand can show.

    Attributes:
        excess_upper: upper confidence bound on tau (Hoeffding and Azuma), at the level of the test.
        detectable: the smallest tau found with probability ``POWER``; ``None`` where not even tau = 1 is.
        users_needed: users in all at which ``TOLERATED`` would be found with that probability, at the same rate and
            spread of matches; ``None`` where it is already. An estimate.
        at_least: whether ``users_needed`` is only a lower end, because too few matches were seen to extrapolate from.
    """

    excess_upper: float
    detectable: float | None
    users_needed: int | None
    at_least: bool = False

    @property
    def enough(self) -> bool:
        return self.users_needed is None


def power(d: Weights, p: float, p_upper: float, users: int, level: float) -> Power:
    """Power of the feature-match or user-match test for independent coins.

    Args:
        d: matches per user, at least one. p_upper: upper bound on the rate at which holders are in train.
        users: all, with and without matches. level: of the test, in (0, 1).
    """
    excess = max(0.0, (p_upper - p) / (1 - p))
    critical = _critical(d, p, level)
    detectable = None if critical is None else _detectable(d, p, critical)
    if detectable is not None and detectable <= TOLERATED:
        return Power(excess, detectable, None)
    return Power(excess, detectable, _needed(d, p, users, level))


def power_without_matches(p: float, users: int, level: float) -> Power:
    """Nothing matched: any rate of matches up to 3 in ``users`` is consistent with that (rule of three, at 95 %)."""
    fewest = math.ceil(math.log(level) / math.log(p))
    return Power(1.0, None, math.ceil(users * max(1.0, fewest / 3)), at_least=True)


def _critical(d: Weights, p: float, level: float) -> int | None:
    """The smallest T that is rejected; ``None`` where none is. In the units of the weights as given."""
    odds, bar = float(logit(p)), math.log(level)
    low, high = 0, d.total
    if log_upper_tail(d, high * d.unit, odds) > bar:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if log_upper_tail(d, middle * d.unit, odds) <= bar:
            high = middle
        else:
            low = middle
    return high * d.unit


def _detectable(d: Weights, p: float, critical: int) -> float | None:
    def found(tau: float) -> bool:
        rate = p + (1 - p) * tau
        return rate >= 1 or log_upper_tail(d, critical, float(logit(rate))) >= math.log(POWER)

    low, high = 0.0, 1.0
    for _ in range(20):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if found(middle) else (middle, high)
    return high


def _needed(d: Weights, p: float, users: int, level: float) -> int:
    """Normal approximation, and never fewer than could reject at all: p^holders <= level."""
    rate = p + (1 - p) * TOLERATED
    width = -float(ndtri(level)) * math.sqrt(p * (1 - p)) + float(ndtri(POWER)) * math.sqrt(rate * (1 - rate))
    effective = d.total**2 / float(d.counts @ d.values**2)
    holders_needed = max((width / (rate - p)) ** 2 * d.users / effective, math.log(level) / math.log(p))
    return int(np.ceil(max(users + 1.0, users * holders_needed / d.users)))
