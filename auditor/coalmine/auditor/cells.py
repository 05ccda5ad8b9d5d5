"""Epsilon between two bounds, from the masses of cells.

Cells of T are discrete outcomes, and the epsilon of discrete outcomes is the best event on the likelihood ratio:
``max over A of log((P1(A) - delta) / P0(A))``, and the same with the hypotheses exchanged.

* Lower bound: cutting T into cells is post-processing, so the cells' epsilon never exceeds the score's.
* Upper bound: within a cell the likelihood ratio stays near its mean. For any mixture of unit normals Jensen's
  inequality gives ``|(log f)'| <= y`` with ``y = sqrt(2 log(PEAK / f))``, and y changes by at most 1 per unit; likewise
  ``-1 <= (log f)'' <= y^2 - 1``. A convex function lies below its chord, so splitting a cell into two atoms at the
  extreme ratios, with the same masses, only raises the divergence.

Both bounds are the epsilon of a pair of discrete laws; the cells that hold them apart are cut until they meet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from coalmine.auditor.background import NEGLECTED, PEAK, UNIT, Array, Background, Series, series

_CELL = 1 / 32
"""Width of a first cell, in units of the noise, at most."""
_PARTS = 32
_LEVELS = 8
_MOST_CELLS = 1 << 20


@dataclass(frozen=True)
class Cells:
    """Cells of T with bounds on their masses under f0 (a) and under f0 shifted by the canary (b); (n,) each."""

    left: Array
    width: Array
    a_low: Array
    a_high: Array
    b_low: Array
    b_high: Array

    def select(self, mask: NDArray[np.bool_]) -> Cells:
        return Cells(*(column[mask] for column in self._columns()))

    def join(self, other: Cells) -> Cells:
        return Cells(*map(np.concatenate, zip(self._columns(), other._columns(), strict=True)))

    def _columns(self) -> tuple[Array, ...]:
        return self.left, self.width, self.a_low, self.a_high, self.b_low, self.b_high


def epsilon_bounds(
    background: Background, shift: float, delta: float, tilts: list[float], tolerance: float
) -> tuple[float, float]:
    """Lower and upper bound of epsilon; the canary shifts T upwards by ``shift`` > 0 units of the noise."""
    low = min(background.edge(tilt, -1) for tilt in tilts)
    high = max(background.edge(tilt, 1) for tilt in tilts) + shift
    laws = [series(background, tilt, low, high) for tilt in tilts]
    parents = math.ceil((high - low) / (_CELL * _PARTS))
    width = (high - low) / parents
    cells = measure(laws, low + width * np.arange(parents, dtype=np.float64), width, shift)
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
            finer = finer.join(measure(laws, of_width.left, float(each), shift))
        cells = finer
        low_bound, high_bound, price = _certify(cells, shift, background.q, delta)
        lower, upper = max(lower, low_bound), min(upper, high_bound)
        if not upper - lower < 0.5 * gap:
            break
    return lower, upper


def measure(laws: list[Series], left: Array, width: float, shift: float) -> Cells:
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
    return Cells(lefts, np.full(len(lefts), part), a_low, a_high, b_low, b_high)


def _certify(cells: Cells, shift: float, q: float, delta: float) -> tuple[float, float, Array]:
    """Lower and upper bound from cells, and what each cell's width adds to the divergence at ``lower``."""
    slack = _ratio_slack(cells, shift)
    near, far = expit(slack), expit(-slack)
    apart, together = np.stack([far, near]), np.stack([near, far])
    # A direction has the canary's presence, or its absence, as the likelier hypothesis. Its (numerator, denominator)
    # pairs take the bounds on a and b at the ends that lower, respectively raise, numerator - exp(eps) denominator;
    # then the split cells.
    directions = [
        (
            _present(cells.a_high, cells.b_low, q),
            _present(cells.a_low, cells.b_high, q),
            _present(cells.a_low * apart, cells.b_high * together, q),
        )
    ]
    lower = best_event(*directions[0][0], delta, -1)
    if q == 1 or lower < -math.log1p(-q):  # absence is never likelier by more than 1 / (1 - q)
        directions.append(
            (
                _absent(cells.a_low, cells.b_high, q),
                _absent(cells.a_high, cells.b_low, q),
                _absent(cells.a_high * together, cells.b_low * apart, q),
            )
        )
        lower = max(lower, best_event(*directions[1][0], delta, -1))
    upper, price = lower, np.zeros(len(cells.left))
    for _, whole, split in directions:
        bound = best_event(*split, delta - 4 * NEGLECTED, 1)  # all mass beyond the window is granted to the attacker
        if bound > lower:
            upper = max(upper, bound)
            price += _divergence(*split, lower).sum(axis=0) - _divergence(*whole, lower)
    return lower, upper, np.maximum(price, 0.0)


def _present(a: Array, b: Array, q: float) -> tuple[Array, Array]:
    return (1 - q) * a + q * b, a


def _absent(a: Array, b: Array, q: float) -> tuple[Array, Array]:
    return a, (1 - q) * a + q * b


def _ratio_slack(cells: Cells, shift: float) -> Array:
    """(n,) bound on how far ``log(f0(x - s) / f0(x))`` strays within a cell from the logarithm of the masses' ratio."""
    width = cells.width
    with np.errstate(divide="ignore"):
        y_a = np.sqrt(2 * np.maximum(0.0, np.log(PEAK * width / cells.a_low)))
        y_b = np.sqrt(2 * np.maximum(0.0, np.log(PEAK * width / cells.b_low)))
    first_order = y_a + y_b + 2 * width
    second_order = shift * np.maximum(1.0, (np.minimum(y_a, y_b) + shift + width) ** 2 - 1)
    return np.asarray(width * np.minimum(first_order, second_order), dtype=np.float64)


def _divergence(numerator: Array, denominator: Array, eps: float) -> Array:
    return np.maximum(0.0, numerator - math.exp(eps) * denominator)


def best_event(numerator: Array, denominator: Array, delta: float, side: int) -> float:
    """``max over events A of log((numerator(A) - delta) / denominator(A))``, at least 0.

    The best event collects outcomes in the order of their likelihood ratio (Neyman and Pearson 1933). ``side`` -1
    rounds the running sums towards a smaller value, +1 towards a larger one.
    """
    numerator, denominator = numerator.ravel(), denominator.ravel()
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        order = np.argsort(-numerator / denominator)  # 0 / 0 comes last and adds nothing
    rounding = 1 + side * 2 * UNIT * len(order)
    gain = np.cumsum(numerator[order]) * rounding - delta
    cost = np.cumsum(denominator[order]) / rounding
    gained = gain > 0
    with np.errstate(divide="ignore", over="ignore"):
        return max(0.0, float(np.max(np.log(gain[gained] / cost[gained]), initial=0.0)))
