"""The feature-match test (arXiv 2606.16952, section 5.1): are matched rare features in train more often than by chance?

``l`` features, each held by exactly k users, appear in the synthetic output; ``d_i`` of them are held by user i; T is
the sum of d_i over train. Without learning, T is a sum of d_i times independent coins of rate p.

Corrections to the printed paper:

* Theorem 2 states level 1 - alpha for the larger of two one-sided bounds, each at alpha. Together they fail with
  probability up to 2 alpha. ``eps_one_sided`` (train over-represented) holds at alpha and is the default;
  ``eps_printed`` is the theorem as printed. A two-sided claim needs alpha / 2 for each side.
* Theorem 3 prints q = p / (p + (1-p) e^eps) once; Algorithm 1 and the proof use e^-eps, which is right: with learning,
  a match makes inclusion more likely.
* A >= 1 would make eps' infinite. With Hoeffding's width g > 0 it cannot happen, since T <= ||d||_1; with no match g is
  0 and the test is vacuous, which is an error here.

Beyond the paper: Hoeffding's inequality is loose, and the law of T is known. ``p_value`` and ``eps_lower`` use it: the
same level, never weaker.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit, logit

from coalmine.auditor.disclosure import fixed_size
from coalmine.auditor.disclosure.assignment import Assignment, AssignmentKind
from coalmine.auditor.disclosure.weighted_sum import Weights, log_upper_tail, weights
from coalmine.protocol.errors import StudyError

EPS_LIMIT = 200.0


@dataclass(frozen=True)
class Hoeffding:
    """The test as printed. Its level holds for a fixed-size assignment too: such membership is negatively associated.

    Attributes:
        p_value: ``exp(-2 (T - l k p)^2 / ||d||^2)`` for T >= l k p, else 1.
        critical: reject from here on, ``l k p + ||d|| sqrt(log(1/alpha) / 2)``.
        p_hat: lower confidence bound on the rate at which holders of a match are in train, as printed; may be negative.
        p_upper: its counterpart from above, at most 1. Both hold at alpha each, for the mean of the holders' inclusion
            rates given those before them (Azuma and Hoeffding), whatever the mechanism.
        eps_one_sided, eps_printed: as in the module's text; for independent coins and adding or removing a user.
    """

    p_value: float
    critical: float
    p_hat: float
    p_upper: float
    eps_one_sided: float
    eps_printed: float


@dataclass(frozen=True)
class FeatureMatch:
    """One feature-match test.

    Attributes:
        matches: l k, the sum of all d_i. train: T. holders: users with d_i > 0.
        weights: (d_i, how many users have it) for each distinct d_i > 0.
        p_value, eps_lower: from the law of T (``method`` "exact") or its Chernoff bound where the law is too costly.
    """

    matches: int
    train: int
    holders: int
    holders_train: int
    weights: tuple[tuple[int, int], ...]
    hoeffding: Hoeffding
    method: str
    p_value: float
    eps_lower: float

    @property
    def phantoms(self) -> int:
        """Matches held out: they needed no training data."""
        return self.matches - self.train

    def fewer(self, p: float) -> float:
        """Upper bound (Hoeffding) on the probability of as few matches in train, did nobody learn from either split.

        No leak explains a small one: the splits may be swapped, or not assigned as declared.
        """
        deficit = max(0.0, self.matches * p - self.train)
        return math.exp(-2 * deficit**2 / sum(count * d**2 for d, count in self.weights))


def feature_match(d: ArrayLike, train: ArrayLike, assignment: Assignment, alpha: float) -> FeatureMatch:
    """Test zero learning, and bound epsilon from below.

    Args:
        d: (n,) matched features per user, whole numbers >= 0.
        train: (n,) bool.
        alpha: level of every bound, in (0, 1).

    Raises:
        StudyError: a value out of its range, or no match at all: the test would be vacuous.
    """
    each, inside = np.asarray(d), np.asarray(train, bool)
    if each.shape != inside.shape or each.ndim != 1:
        raise StudyError("d and train differ in length", where="d", remedy="one number per user")
    found, seen = weights(each), int(each[inside].sum())
    hoeffding = hoeffding_test(found, seen, assignment.p, alpha)
    fixed = assignment.kind is AssignmentKind.FIXED_SIZE
    is_exact = fixed_size.exact(found, assignment) if fixed else found.exact
    return FeatureMatch(
        matches=int(each.sum()),
        train=seen,
        holders=found.users,
        holders_train=int((each[inside] > 0).sum()),
        weights=tuple(zip((found.values * found.unit).tolist(), found.counts.tolist(), strict=True)),
        hoeffding=hoeffding,
        method="exact" if is_exact else "chernoff",
        p_value=math.exp(log_p_value(found, seen, assignment, 0.0)),
        eps_lower=eps_lower(found, seen, assignment, alpha),
    )


def hoeffding_test(d: Weights, train: int, p: float, alpha: float) -> Hoeffding:
    """The printed formulas.

    Raises:
        StudyError: alpha or T out of its range, or no match at all.
    """
    _check(d, train, alpha)
    matches = d.total * d.unit
    norm = d.unit * math.sqrt(float(d.counts @ d.values**2))
    width = norm * math.sqrt(math.log(1 / alpha) / 2)
    surplus = max(0.0, train - matches * p)
    low, high = (train - width) / matches, (train + width) / matches
    over = max(0.0, float(logit(low) - logit(p))) if low > 0 else 0.0
    under = max(0.0, float(logit(p) - logit(high))) if high < 1 else 0.0
    return Hoeffding(
        p_value=math.exp(-2 * (surplus / norm) ** 2),
        critical=matches * p + width,
        p_hat=low,
        p_upper=min(1.0, high),
        eps_one_sided=over,
        eps_printed=max(over, under),
    )


def log_p_value(d: Weights, train: int, assignment: Assignment, eps: float) -> float:
    """``log`` of the largest probability that eps-DP allows for a T this large; zero learning is eps = 0."""
    if assignment.kind is not AssignmentKind.FIXED_SIZE:
        return log_upper_tail(d, train, assignment.log_odds + eps)
    if eps == 0:
        return fixed_size.log_upper_tail_zero(d, train, assignment)
    return fixed_size.log_upper_tail_eps(d, train, assignment, eps)


def eps_lower(d: Weights, train: int, assignment: Assignment, alpha: float) -> float:
    """The largest epsilon that is still rejected at ``alpha``; 0 if none is.

    Raises:
        StudyError: alpha or T out of its range, or no match at all.
    """
    _check(d, train, alpha)

    def above(eps: float) -> float:
        return max(log_p_value(d, train, assignment, eps), -1e4) - math.log(alpha)

    if above(0.0) > 0 or above(1e-9) >= 0:
        return 0.0
    high = 1.0
    while above(high) < 0:
        if high >= EPS_LIMIT:
            return EPS_LIMIT
        high *= 2
    return float(brentq(above, 1e-9, high, xtol=1e-13, rtol=1e-14))


def inclusion_rate(p: float, eps: float) -> float:
    """q_eps, the largest rate of inclusion given the output that eps-DP allows: p / (p + (1-p) e^-eps)."""
    return float(expit(logit(p) + eps))


def _check(d: Weights, train: int, alpha: float) -> None:
    if not 0 < alpha < 1:
        raise StudyError(f"{alpha!r} is not allowed", where="alpha", remedy="needs a level in (0, 1)")
    if d.users == 0:
        raise StudyError("no user holds a match", where="d", remedy="without matches the test is vacuous")
    if not 0 <= train <= d.total * d.unit:
        raise StudyError(
            f"{train} of {d.total * d.unit} matches in train", where="train", remedy="needs 0 to the sum of d"
        )
