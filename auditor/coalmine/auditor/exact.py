"""The exact audit of a simulated round: the epsilon of the score itself, without drawing a trial (method, section 7a).

With the test users' votes known, ``T = sum_u J_u s_u + Normal(0, tau^2)`` without the canary, and
``f1(x) = (1-q) f0(x) + q f0(x - s)`` with it. Cells of T are discrete outcomes, and the epsilon of discrete outcomes is the best event
on the likelihood ratio: ``max over A of log((P1(A) - delta) / P0(A))``, and the same with the hypotheses exchanged.

* Lower bound: cutting T into cells is post-processing, so the cells' epsilon never exceeds the score's.
* Upper bound: within a cell the likelihood ratio stays near its mean. For any mixture of unit normals Jensen's inequality
  gives ``|log f'| <= y`` with ``y = sqrt(2 log(PEAK / f))``, and y changes by at most 1 per unit; likewise
  ``-1 <= (log f)'' <= y^2 - 1``. A convex function lies below its chord, so splitting a cell into two atoms at the extreme
  ratios, with the same masses, only raises the divergence.

Both bounds are the epsilon of a pair of discrete laws; the cells that hold them apart are cut until they meet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from coalmine.auditor.background import NEGLECTED, PEAK, UNIT, WIDEST, Array, Background, Series, series
from coalmine.auditor.ideal import ideal_epsilon
from coalmine.protocol.errors import DataError, StudyError

_CELL = 1 / 32
"""Width of a first cell, in units of the noise."""
_PARTS = 32
_LEVELS = 8
_MOST_CELLS = 1 << 20


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
    for tilts in (_likely_tilts(background, shift, delta), _ladder(background, shift)):
        if upper - lower <= tolerance:
            break
        low, high = _bounds(background, shift, delta, tilts, tolerance)
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
        raise DataError("the score holds no noise", where="exact audit", remedy="the canary must vote on the coordinates")
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
        raise DataError("projections are not finite numbers", where="exact audit", remedy="(N,) finite values, one per user")
    if not (math.isfinite(tau) and (tau > 0 or (tau == 0 and s_canary == 0))):
        raise DataError(f"the noise in the score is {tau!r}", where="exact audit", remedy="needs sigma C ||a|| > 0")


def _likely_tilts(background: Background, shift: float, delta: float) -> list[float]:
    """The plain law, and where the best event probably lies far out, the law tilted to its border (normal approximation)."""
    std = background.std(0.0)
    separation = shift / std
    eps = ideal_epsilon(separation, background.q, delta)
    border = math.log1p(math.expm1(min(eps, 700.0)) / background.q) / separation + separation / 2
    return [0.0] if border < 5 else [0.0, border / std]


def _ladder(background: Background, shift: float) -> list[float]:
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


@dataclass(frozen=True)
class _Cells:
    """Cells of T with bounds on their masses under f0 (a) and under f0 shifted by the canary (b); (n,) each."""

    left: Array
    width: Array
    a_low: Array
    a_high: Array
    b_low: Array
    b_high: Array

    def select(self, mask: NDArray[np.bool_]) -> _Cells:
        return _Cells(*(column[mask] for column in self._columns()))

    def join(self, other: _Cells) -> _Cells:
        return _Cells(*map(np.concatenate, zip(self._columns(), other._columns(), strict=True)))

    def _columns(self) -> tuple[Array, ...]:
        return self.left, self.width, self.a_low, self.a_high, self.b_low, self.b_high


def _bounds(
    background: Background, shift: float, delta: float, tilts: list[float], tolerance: float
) -> tuple[float, float]:
    """Lower and upper bound of epsilon; the canary shifts T upwards by ``shift`` > 0 units of the noise."""
    low = min(background.edge(tilt, -1) for tilt in tilts)
    high = max(background.edge(tilt, 1) for tilt in tilts) + shift
    laws = [series(background, tilt, low, high) for tilt in tilts]
    parents = math.ceil((high - low) / (_CELL * _PARTS))
    width = (high - low) / parents
    cells = _measure(laws, low + width * np.arange(parents), width, shift)
    lower, upper, price = _certify(cells, shift, background.q, delta)
    for _ in range(_LEVELS):
        gap = upper - lower
        # The cells whose width holds the bounds apart, dearest first, up to nearly all of the price.
        order = np.argsort(-price)
        reach = np.cumsum(price[order])
        worst = order[: 1 + int(np.searchsorted(reach, 0.999 * reach[-1]))]
        if gap <= tolerance or reach[-1] == 0 or len(cells.left) + _PARTS * len(worst) > _MOST_CELLS:
            break
        chosen = np.zeros(len(price), dtype=np.bool_)
        chosen[worst] = True
        finer = cells.select(~chosen)
        for each in np.unique(cells.width[chosen]):
            of_width = cells.select(chosen & (cells.width == each))
            finer = finer.join(_measure(laws, of_width.left, float(each), shift))
        cells = finer
        low_bound, high_bound, price = _certify(cells, shift, background.q, delta)
        lower, upper = max(lower, low_bound), min(upper, high_bound)
        if not upper - lower < 0.5 * gap:
            break
    return lower, upper


def _measure(laws: list[Series], left: Array, width: float, shift: float) -> _Cells:
    """Cut cells in parts and bound their masses by every law; the tightest bounds count."""
    part = width / _PARTS
    lefts = (left[:, None] + part * np.arange(_PARTS)).ravel()
    a_low, a_high = np.zeros(len(lefts)), np.full(len(lefts), np.inf)
    b_low, b_high = a_low.copy(), a_high.copy()
    for law in laws:
        for moved, least, most in ((0.0, a_low, a_high), (shift, b_low, b_high)):
            masses, errors = law.masses(left - moved, width, _PARTS)
            np.maximum(least, masses - errors, out=least)
            np.minimum(most, masses + errors, out=most)
    return _Cells(lefts, np.full(len(lefts), part), a_low, a_high, b_low, b_high)


def _certify(cells: _Cells, shift: float, q: float, delta: float) -> tuple[float, float, Array]:
    """Lower and upper bound from cells, and what each cell's width adds to the divergence at ``lower``."""
    slack = _ratio_slack(cells, shift)
    near, far = expit(slack), expit(-slack)
    apart, together = np.stack([far, near]), np.stack([near, far])
    # A direction has the canary's presence, or its absence, as the likelier hypothesis. Its (numerator, denominator) pairs take
    # the bounds on a and b at the ends that lower, respectively raise, numerator - exp(eps) denominator; then the split cells.
    directions = [
        (
            _present(cells.a_high, cells.b_low, q),
            _present(cells.a_low, cells.b_high, q),
            _present(cells.a_low * apart, cells.b_high * together, q),
        )
    ]
    lower = _best_event(*directions[0][0], delta, -1)
    if q == 1 or lower < -math.log1p(-q):  # absence is never likelier by more than 1 / (1 - q)
        directions.append(
            (
                _absent(cells.a_low, cells.b_high, q),
                _absent(cells.a_high, cells.b_low, q),
                _absent(cells.a_high * together, cells.b_low * apart, q),
            )
        )
        lower = max(lower, _best_event(*directions[1][0], delta, -1))
    upper, price = lower, np.zeros(len(cells.left))
    for _, whole, split in directions:
        bound = _best_event(*split, delta - 4 * NEGLECTED, 1)  # all mass beyond the window is granted to the attacker
        if bound > lower:
            upper = max(upper, bound)
            price += _divergence(*split, lower).sum(axis=0) - _divergence(*whole, lower)
    return lower, upper, np.maximum(price, 0.0)


def _present(a: Array, b: Array, q: float) -> tuple[Array, Array]:
    return (1 - q) * a + q * b, a


def _absent(a: Array, b: Array, q: float) -> tuple[Array, Array]:
    return a, (1 - q) * a + q * b


def _ratio_slack(cells: _Cells, shift: float) -> Array:
    """(n,) bound on how far ``log(f0(x - s) / f0(x))`` strays within a cell from the logarithm of the masses' ratio."""
    width = cells.width
    with np.errstate(divide="ignore"):
        y_a = np.sqrt(2 * np.maximum(0.0, np.log(PEAK * width / cells.a_low)))
        y_b = np.sqrt(2 * np.maximum(0.0, np.log(PEAK * width / cells.b_low)))
    first_order = y_a + y_b + 2 * width
    second_order = shift * np.maximum(1.0, (np.minimum(y_a, y_b) + shift + width) ** 2 - 1)
    return width * np.minimum(first_order, second_order)


def _divergence(numerator: Array, denominator: Array, eps: float) -> Array:
    return np.maximum(0.0, numerator - math.exp(eps) * denominator)


def _best_event(numerator: Array, denominator: Array, delta: float, side: int) -> float:
    """``max over events A of log((numerator(A) - delta) / denominator(A))``, at least 0.

    The best event collects outcomes in the order of their likelihood ratio (Neyman and Pearson 1933). ``side`` -1 rounds the
    running sums towards a smaller value, +1 towards a larger one.
    """
    numerator, denominator = numerator.ravel(), denominator.ravel()
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-numerator / denominator)  # 0 / 0 comes last and adds nothing
    rounding = 1 + side * 2 * UNIT * len(order)
    gain = np.cumsum(numerator[order]) * rounding - delta
    cost = np.cumsum(denominator[order]) / rounding
    gained = gain > 0
    with np.errstate(divide="ignore"):
        return max(0.0, float(np.max(np.log(gain[gained] / cost[gained]), initial=0.0)))
