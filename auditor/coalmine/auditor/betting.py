"""One-sided bounds on the mean of bounded independent draws, by betting (Waudby-Smith and Ramdas 2023, section 4).

Whoever believes that the mean is m accepts fair bets on ``X - m``. The wealth ``prod_i (1 + l_i (X_i - m))`` then is
a nonnegative martingale for any stakes ``l_i`` that depend on earlier draws only, so it reaches ``1/gamma`` with
probability at most gamma: every m at which it did is rejected. The number n of draws is fixed, and the final wealth
decides.

Stakes are the predictable plug-in ``sqrt(2 log(1/gamma) / (n V))`` cut at ``0.9 / m``. V is the variance of the draws
in earlier blocks (1/4 in the first); the paper updates V after every draw and mixes in 1/4. Before the cut the stakes
do not depend on m, so wealth decreases with m and the rejected means form an interval.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.bisection import last_true
from coalmine.protocol.compiled import compiled
from coalmine.protocol.errors import StudyError

Array = NDArray[np.float64]

_BLOCKS = 64
_LARGEST_STAKE = 0.9
_ROUNDING = 1e-6
"""Log-wealth demanded beyond log(1/gamma): more than a million rounded logarithms can be wrong by."""
_SMALLEST = 1e-100


def mean_lower(draws: Array, low: float, high: float, gamma: float) -> float:
    """Lower bound on the mean: wrong with probability at most ``gamma``.

    Args:
        draws: (n,) independent, identically distributed, n >= 1.
        low, high: bounds on every draw that are known without seeing any; draws are cut to them (rounding).
        gamma: in (0, 1).

    Raises:
        StudyError: no draws, gamma out of range, or a draw outside its bounds by more than rounding.
    """
    return low + (high - low) * _unit_lower(_unit(draws, low, high, gamma), gamma)


def mean_upper(draws: Array, low: float, high: float, gamma: float) -> float:
    """Upper bound on the mean: wrong with probability at most ``gamma``. Arguments and errors as :func:`mean_lower`."""
    return high - (high - low) * _unit_lower(1 - _unit(draws, low, high, gamma), gamma)


def _unit(draws: Array, low: float, high: float, gamma: float) -> Array:
    """The draws on the scale where ``low`` is 0 and ``high`` is 1."""
    if not 0 < gamma < 1:
        raise StudyError(f"{gamma!r} is not allowed", where="gamma", remedy="needs a failure probability in (0, 1)")
    if not len(draws):
        raise StudyError("no draws", where="audit.trials", remedy="needs at least one trial")
    rounding = 1e-9 * max(abs(low), abs(high))
    if not (low - rounding <= draws.min() and draws.max() <= high + rounding):
        raise StudyError("a draw lies outside its bounds", where="draws", remedy=f"needs values in [{low}, {high}]")
    return np.clip((draws - low) / (high - low), 0.0, 1.0) if high > low else np.zeros(len(draws))


def _unit_lower(x: Array, gamma: float) -> float:
    edges = np.linspace(0, len(x), min(_BLOCKS, len(x)) + 1).astype(np.int64)
    stakes = _stakes(x, edges, math.log(1 / gamma))
    needed = math.log(1 / gamma) + _ROUNDING
    bound = last_true(lambda m: m < _SMALLEST or _log_wealth(x, edges, stakes, m) >= needed, 0.0, float(x.mean()))
    return bound if bound >= _SMALLEST else 0.0


def _stakes(x: Array, edges: NDArray[np.int64], evidence: float) -> Array:
    """(blocks,) stakes before the cut, each from the draws of earlier blocks; infinite where those were all alike."""
    seen = edges[1:-1]
    means, squares = np.cumsum(x)[seen - 1] / seen, np.cumsum(x * x)[seen - 1] / seen
    variances = np.append(0.25, np.maximum(squares - means**2, 0.0))
    with np.errstate(divide="ignore"):
        return np.sqrt(2 * evidence / (len(x) * variances))


@compiled()
def _log_wealth(x: Array, edges: NDArray[np.int64], stakes: Array, m: float) -> float:
    """Logarithm of the final wealth; decreasing in m."""
    total = 0.0
    for block in range(len(stakes)):
        stake = min(stakes[block], _LARGEST_STAKE / m)
        product = 1.0
        for i in range(edges[block], edges[block + 1]):
            product *= 1.0 + stake * (x[i] - m)
            if product < 1e-150 or product > 1e150:
                total += math.log(product)
                product = 1.0
        total += math.log(product)
    return total
