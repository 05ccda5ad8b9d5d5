"""One-run audits: many canaries, each included on its own coin, one run, guesses on the clearest ones.

Steinke, Nasr and Jagielski 2023 (arXiv 2305.08846) test (eps, delta)-DP; Mahloujifar, Melis and Chaudhuri 2024
(arXiv 2410.22235) test a whole trade-off curve. How many guesses to make is fixed beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, ndtr, ndtri, xlog1py, xlogy

from coalmine.auditor import gdp
from coalmine.auditor.bisection import last_true
from coalmine.protocol.errors import StudyError

_EPS_LIMIT = 200.0
_MU_LIMIT = 60.0


@dataclass(frozen=True)
class Guesses:
    """What was guessed in one run.

    Attributes:
        canaries: m, each included with probability ``inclusion`` independently.
        guesses: r <= m, canaries on which a guess was made.
        correct: v <= r, right guesses.
        inclusion: p in (0, 1). With p != 1/2 every guess must be "in".

    Raises:
        StudyError: a value out of its range.
    """

    canaries: int
    guesses: int
    correct: int
    inclusion: float = 0.5

    def __post_init__(self) -> None:
        if not 1 <= self.guesses <= self.canaries:
            raise StudyError(
                f"{self.guesses} guesses on {self.canaries} canaries", where="guesses", remedy="needs 1 to m guesses"
            )
        if not 0 <= self.correct <= self.guesses:
            raise StudyError(
                f"{self.correct} of {self.guesses} guesses correct", where="correct", remedy="needs 0 to r correct"
            )
        if not 0 < self.inclusion < 1:
            raise StudyError(f"{self.inclusion!r} is not allowed", where="inclusion", remedy="needs a rate in (0, 1)")


def steinke_p_value(seen: Guesses, eps: float, delta: float) -> float:
    """Probability, at most, that an (eps, delta)-DP mechanism lets this many guesses be right.

    ``min(1, beta + 2 m delta alpha)`` with ``t = p / (p + (1-p) e^-eps)``, ``beta = P[Bin(r, t) >= v]`` and
    ``alpha = max_{1<=i<=v} P[v > Bin(r, t) >= v-i] / i``.

    Args:
        eps: >= 0.
        delta: in [0, 1); 0 where ``inclusion`` is not 1/2, since no delta term is known there.

    Raises:
        StudyError: a value out of its range.
    """
    if not eps >= 0:
        raise StudyError(f"{eps!r} is not allowed", where="eps", remedy="needs an epsilon >= 0")
    if not 0 <= delta < 1:
        raise StudyError(f"{delta!r} is not allowed", where="delta", remedy="needs a probability in [0, 1)")
    if delta > 0 and seen.inclusion != 0.5:
        raise StudyError(
            "no delta term is known for an inclusion probability other than 1/2",
            where="delta",
            remedy="set delta to 0 or include every canary with probability 1/2",
        )
    miss = (1 - seen.inclusion) / seen.inclusion * math.exp(-eps)
    masses = _binomial(seen.guesses, 1 / (1 + miss), miss / (1 + miss))
    beta = float(masses[seen.correct :].sum())
    if seen.correct == 0:
        return 1.0
    below = np.cumsum(masses[: seen.correct][::-1])
    alpha = float((below / np.arange(1, seen.correct + 1)).max())
    return min(1.0, beta + 2 * seen.canaries * delta * alpha)


def steinke_eps_lower(seen: Guesses, delta: float, level: float) -> float:
    """The largest eps whose p-value is below ``level``; 0 if none is. Holds with confidence ``1 - level``.

    Raises:
        StudyError: a value out of its range.
    """
    _require_level(level)
    if steinke_p_value(seen, 0.0, delta) >= level:
        return 0.0
    return last_true(lambda eps: steinke_p_value(seen, eps, delta) < level, 0.0, _EPS_LIMIT)


def rejects_curve(seen: Guesses, inverse_blow_up: Callable[[float], float], level: float) -> bool:
    """Whether a trade-off curve is rejected at ``level`` (Mahloujifar et al. 2024, Algorithm for 2 alternatives).

    Args:
        inverse_blow_up: ``b(x) = f(1 - x)`` on [0, 1] for a symmetric trade-off curve ``f``: an event of probability
            ``x`` with a canary has at least probability ``b(x)`` without. A smaller b is rejected less, so a lower
            estimate of it keeps the statement valid.
        level: in (0, 1).

    Raises:
        StudyError: a value out of its range, or an inclusion probability other than 1/2.
    """
    _require_level(level)
    if seen.inclusion != 0.5:
        raise StudyError(
            "the curve test is known for inclusion probability 1/2 only",
            where="inclusion",
            remedy="include every canary with probability 1/2",
        )
    c, total = seen.correct, seen.guesses
    scale = level * total / seen.canaries
    r, h = scale * c / total, scale * (total - c) / total
    for i in range(c - 1, -1, -1):
        if r + h > total / seen.canaries:
            break  # both only grow, and r may leave [0, 1]
        higher = max(h, inverse_blow_up(r))
        r += i / (total - i) * (higher - h)
        h = higher
    return r + h > total / seen.canaries


def gdp_mu_lower(seen: Guesses, level: float) -> float:
    """The largest mu whose GDP curve is rejected at ``level``; 0 if none is.

    Formal for a mechanism whose own curve is GDP, heuristic otherwise (subsampling and hidden state are not GDP).

    Raises:
        StudyError: as :func:`rejects_curve`.
    """

    def rejected(mu: float) -> bool:
        return rejects_curve(seen, lambda x: float(ndtr(ndtri(x) - mu)), level)

    return last_true(rejected, 0.0, _MU_LIMIT) if rejected(0.0) else 0.0


def gdp_eps_lower(seen: Guesses, delta: float, level: float) -> float:
    """:func:`gdp_mu_lower` read as an epsilon at ``delta``."""
    return gdp.eps(gdp_mu_lower(seen, level), delta)


def inverse_blow_up(epsilons: ArrayLike, deltas: ArrayLike) -> Callable[[float], float]:
    """A lower estimate of ``b`` for a mechanism that is (epsilons[j], deltas[j])-DP for every j.

    Each pair bounds the trade-off curve by two lines (Dong, Roth and Su 2022, Proposition 2.5); the largest counts.
    With the claim's own profile :func:`rejects_curve` tests the claim itself, which is formal.

    Args:
        epsilons: (n,) >= 0.
        deltas: (n,) in [0, 1], upper bounds.
    """
    eps: NDArray[np.float64] = np.asarray(epsilons, float)
    slack = 1 - np.asarray(deltas, float)

    def b(x: float) -> float:
        steep, flat = slack - np.exp(eps) * (1 - x), np.exp(-eps) * (slack - (1 - x))
        return max(0.0, float(steep.max()), float(flat.max()))

    return b


def _binomial(n: int, p: float, complement: float) -> NDArray[np.float64]:
    """(n+1,) probabilities of Bin(n, p); the complement is passed since p may be within rounding of 1."""
    k = np.arange(n + 1)
    log_choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    hits = xlog1py(k, -complement) if complement < 0.5 else xlogy(k, p)
    return np.exp(log_choose + hits + xlogy(n - k, complement))


def _require_level(level: float) -> None:
    if not 0 < level < 1:
        raise StudyError(f"{level!r} is not allowed", where="level", remedy="needs a significance level in (0, 1)")
