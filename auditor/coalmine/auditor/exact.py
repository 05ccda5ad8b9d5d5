"""The exact audit of a simulated round: the epsilon of the score itself, without drawing a trial.

With the test users' votes known, ``T = sum_u J_u s_u + Normal(0, tau^2)`` without the canary, and
``f1(x) = (1-q) f0(x) + q f0(x - s)`` with it. ``background`` gives masses of T, ``cells`` bounds epsilon by them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from coalmine.auditor.background import WIDEST, Array, Background, series
from coalmine.auditor.cells import epsilon_bounds
from coalmine.auditor.ideal import ideal_epsilon
from coalmine.protocol.errors import DataError, StudyError


@dataclass(frozen=True)
class ExactEpsilon:
    """Certified bounds on the epsilon of a score.

    Attributes:
        lower: a valid lower bound, numerical error included; >= 0.
        upper: a valid upper bound; at least ``lower``.
    """

    lower: float
    upper: float

    @property
    def error(self) -> float:
        """How far ``lower`` can be from the truth."""
        return self.upper - self.lower


@dataclass(frozen=True)
class Rates:
    """Error rates of the decisions ``T > threshold``.

    Attributes:
        tpr, fpr: (n,) float64, probability of the decision with the canary eligible and without it.
        error: certified bound on the error of each.
    """

    tpr: Array
    fpr: Array
    error: float


def exact_epsilon(
    projections: Array, s_canary: float, tau: float, q: float, delta: float, *, tolerance: float = 1e-7
) -> ExactEpsilon:
    """Smallest epsilon >= 0 with both hockey-stick divergences of T at most ``delta``, between certified bounds.

    Args:
        projections: (N,) float64, ``s_u = a^T c_u`` of the other users; N may be 0.
        s_canary: ``a^T v``, what the canary adds when it takes part; any sign.
        tau: standard deviation of the noise in T, > 0 unless ``s_canary`` is 0.
        q: participation rate in (0, 1].
        delta: in (0, 1).
        tolerance: the bounds are refined until they differ by no more, or as far as float64 allows.

    Raises:
        StudyError: q, delta or tolerance out of range.
        DataError: a projection that is not finite, no noise, or noise that vanishes against the other users' votes.
    """
    _check(projections, s_canary, tau, q)
    if not 0 < delta < 1:
        raise StudyError(f"{delta!r} is not allowed", where="delta", remedy="needs a probability in (0, 1)")
    if not tolerance > 0:
        raise StudyError(f"{tolerance!r} is not allowed", where="tolerance", remedy="needs a number > 0")
    if s_canary == 0:
        return ExactEpsilon(0.0, 0.0)
    shift = abs(s_canary) / tau
    background = Background.of(projections * math.copysign(1.0, s_canary), tau, q)
    # Divergences are jointly convex, so a background can only blur what the canary shows without one.
    ideal = ideal_epsilon(shift, q, delta)
    slack = 1e-11 * (1 + ideal)
    lower, upper = 0.0, ideal + slack if ideal > 0 else 0.0
    if len(background.shifts) == 0 or q == 1:  # when everybody takes part the others are a constant
        return ExactEpsilon(max(0.0, ideal - slack), upper)
    for tilts in (_likely_tilts(background, shift, delta), ladder(background, shift)):
        if upper - lower <= tolerance:
            break
        low, high = epsilon_bounds(background, shift, delta, tilts, tolerance)
        lower, upper = max(lower, low), min(upper, high)
    return ExactEpsilon(lower, upper)


def tpr_fpr(projections: Array, s_canary: float, tau: float, q: float, thresholds: float | Array) -> Rates:
    """Exact error rates of the decision ``T > threshold`` at one or many thresholds on T (the whole trade-off curve).

    Args:
        projections, s_canary, tau, q: as for ``exact_epsilon``.
        thresholds: scalar or (n,) float64, infinite values allowed.

    Raises:
        StudyError, DataError: as for ``exact_epsilon``.
    """
    _check(projections, s_canary, tau, q)
    if not tau > 0:
        raise DataError(
            "the score holds no noise", where="exact audit", remedy="the canary must vote on the coordinates"
        )
    background, shift = Background.of(projections, tau, q), s_canary / tau
    low, high = background.edge(0.0, -1), background.edge(0.0, 1)
    law = series(background, 0.0, low, high)
    points = np.atleast_1d(np.asarray(thresholds, dtype=np.float64)) / tau
    if np.isnan(points).any():
        raise DataError("a threshold is not a number", where="exact audit", remedy="thresholds on T")

    def above(x: Array) -> Array:
        tails, _ = law.tails(np.clip(x, low, high), high)
        return np.where(x <= low, 1.0, np.where(x >= high, 0.0, np.clip(tails, 0.0, 1.0)))

    fpr = above(points)
    return Rates((1 - q) * fpr + q * above(points - shift), fpr, law.tails(np.empty(0), high)[1])


def _check(projections: Array, s_canary: float, tau: float, q: float) -> None:
    if not 0 < q <= 1:
        raise StudyError(f"{q!r} is not allowed", where="q", remedy="needs a participation rate in (0, 1]")
    if projections.ndim != 1 or not (np.isfinite(projections).all() and math.isfinite(s_canary)):
        raise DataError(
            "projections are not finite numbers", where="exact audit", remedy="(N,) finite values, one per user"
        )
    if not (math.isfinite(tau) and (tau > 0 or (tau == 0 and s_canary == 0))):
        raise DataError(f"the noise in the score is {tau!r}", where="exact audit", remedy="needs sigma C ||a|| > 0")


def _likely_tilts(background: Background, shift: float, delta: float) -> list[float]:
    """The plain law and, if the best event likely lies far out, the law tilted to its border (normal approximation)."""
    std = background.std(0.0)
    separation = shift / std
    eps = ideal_epsilon(separation, background.q, delta)
    border = math.log1p(math.expm1(min(eps, 700.0)) / background.q) / separation + separation / 2
    return [0.0] if border < 4.4 else [0.0, border / std]


def ladder(background: Background, shift: float) -> list[float]:
    """Tilts whose laws overlap, one below the plain law and on to the far end of where the canary can take T.

    The ladder ends early where its series would be wider than WIDEST together.
    """
    tilts = [-6 / background.std(0.0), 0.0]
    low, reach = background.edge(tilts[0], -1), background.mean(0.0) + shift + 6
    while background.mean(tilts[-1]) < reach:
        tilt = tilts[-1] + 6 / background.std(tilts[-1])
        if (background.edge(tilt, 1) + shift - low) * (len(tilts) + 1) > WIDEST:
            break
        tilts.append(tilt)
    return tilts
