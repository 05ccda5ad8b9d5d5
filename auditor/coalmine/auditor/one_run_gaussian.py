"""The Gaussian reading of a one-run audit, after Agrawal et al. 2026 (arXiv 2606.12733).

A white-box score is a sum over many candidates and releases, which tends to a Gaussian. So the scores of included and
of excluded canaries are read as two Gaussians, and epsilon is where their hockey-stick divergence is delta. Every score
counts, where guesses keep one bit of some; but a fit to hundreds of canaries is carried on into tails of probability
delta, and an included canary that seldom takes part has a mixture for a score. Heuristic, whatever its confidence.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from coalmine.auditor.membership.single_run import gaussian_eps
from coalmine.protocol.errors import StudyError
from coalmine.protocol.finding import Evidence
from coalmine.protocol.privacy import Assurance

Array = NDArray[np.float64]

METHOD = "one-run/gaussian"
_EDGE = 9
"""Points on each edge of the rectangle of spreads; between neighbours epsilon is smooth."""


def gaussian_reading(inside: Array, outside: Array, delta: float, level: float) -> Evidence:
    """The smallest epsilon of all pairs of Gaussians that fit both groups of scores.

    A pair fits if its shift of means is at least Welch's lower limit (at ``level / 2``) and both its standard
    deviations lie in their chi-squared intervals (at ``level / 4`` each). If both groups are independent Gaussian
    samples, the true pair fits with probability ``1 - level``, and its epsilon is at least the one given. Details hold
    the point estimate ``eps_fitted``, which mostly lies above the truth since two deviations never come out alike, and
    the p-values of Jarque and Bera's test that each group is Gaussian.

    Args:
        inside, outside: scores of canaries that were included, and that were not. delta: in (0, 1). level: in (0, 1).

    Returns:
        Epsilon 0 where a group has fewer than two different scores: nothing can be fitted.

    Raises:
        StudyError: a score that is no number, or a value out of its range.
    """
    if not (np.isfinite(inside).all() and np.isfinite(outside).all()):
        raise StudyError("a score is not a number", where="one-run audit", remedy="needs finite scores")
    for where, value in (("delta", delta), ("level", level)):
        if not 0 < value < 1:
            raise StudyError(f"{value!r} is not allowed", where=where, remedy="needs a value in (0, 1)")
    counts = {"in": float(len(inside)), "out": float(len(outside))}
    if min(len(np.unique(inside)), len(np.unique(outside))) < 2:
        return Evidence(METHOD, Assurance.HEURISTIC, 0.0, 1 - level, None, counts)
    m1, m0, s1, s0 = float(inside.mean()), float(outside.mean()), _spread(inside), _spread(outside)
    difference = stats.ttest_ind(inside, outside, equal_var=False)
    shift = max(0.0, float(difference.confidence_interval(1 - level).low))
    details = {
        **counts,
        "mean_in": m1,
        "mean_out": m0,
        "std_in": s1,
        "std_out": s0,
        "eps_fitted": gaussian_eps(m1, s1, m0, s0, delta),
        "gaussian_in": float(stats.jarque_bera(inside).pvalue),
        "gaussian_out": float(stats.jarque_bera(outside).pvalue),
    }
    eps = _smallest(shift, _interval(inside, level / 4), _interval(outside, level / 4), delta)
    return Evidence(METHOD, Assurance.HEURISTIC, eps, 1 - level, None, details)


def _smallest(shift: float, inside: tuple[float, float], outside: tuple[float, float], delta: float) -> float:
    """The smallest epsilon over a grid on the rectangle of standard deviations.

    Epsilon grows with the shift and is the same where shift and both deviations are multiplied alike; so larger
    deviations together give less, and the smallest value lies where one of them is largest.
    """
    pairs = [(inside[1], spread) for spread in _edge(outside, inside[1])]
    pairs += [(spread, outside[1]) for spread in _edge(inside, outside[1])]
    return min(gaussian_eps(shift, s1, 0.0, s0, delta) for s1, s0 in pairs)


def _edge(interval: tuple[float, float], other: float) -> Array:
    """Points of an interval, the one next to ``other`` among them: equal deviations are where epsilon has its kink."""
    return np.append(np.linspace(*interval, _EDGE), np.clip(other, *interval))


def _interval(scores: Array, level: float) -> tuple[float, float]:
    """Two-sided for the standard deviation of a Gaussian."""
    freedom = len(scores) - 1
    spread = _spread(scores)
    low, high = (spread * math.sqrt(freedom / float(stats.chi2.ppf(at, freedom))) for at in (1 - level / 2, level / 2))
    return low, high


def _spread(scores: Array) -> float:
    return float(scores.std(ddof=1))
