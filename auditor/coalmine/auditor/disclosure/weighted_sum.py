"""The law of S = sum_i d_i z_i, z_i independent coins of one rate q, far into its upper tail.

The distribution is a product of (1 - q) + q x^d. Its coefficients by FFT carry an absolute error near 1e-16, useless
for a p-value of 1e-21. So the coins are tilted first (each probability raised until the mean of S is the observed
value), the FFT is taken where the mass is, and the tail is tilted back: its *relative* error is near 1e-12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import irfft, next_fast_len
from scipy.optimize import brentq
from scipy.special import expit

from coalmine.protocol.errors import StudyError

Array = NDArray[np.float64]

EXACT_WORK = 2e7
"""Distinct weights times possible values up to which the law is computed exactly: about a second."""
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Weights:
    """Positive whole weights, equal ones together, divided by their greatest common divisor.

    Attributes:
        values, counts: (g,) distinct weights ascending, and how many users have each.
        unit: the divisor that was taken out.
    """

    values: NDArray[np.int64]
    counts: NDArray[np.int64]
    unit: int

    @property
    def users(self) -> int:
        return int(self.counts.sum())

    @property
    def total(self) -> int:
        """Sum of all weights, in units."""
        return int(self.values @ self.counts)

    @property
    def exact(self) -> bool:
        """Whether :func:`log_upper_tail` is the tail itself, not its Chernoff bound."""
        return len(self.values) * (self.total + 1) <= EXACT_WORK

    def steps(self, threshold: int) -> int:
        """The smallest number of units that reaches ``threshold``."""
        return -(-threshold // self.unit)


def weights(d: ArrayLike) -> Weights:
    """Group whole numbers >= 0; zeros are left out.

    Raises:
        StudyError: a weight that is negative or not a whole number.
    """
    given = np.asarray(d)
    if given.size and (not np.issubdtype(given.dtype, np.integer) or given.min() < 0):
        raise StudyError("a weight is not a whole number >= 0", where="d", remedy="needs counts of matches per user")
    values, counts = np.unique(given[given > 0].astype(np.int64), return_counts=True)
    unit = int(np.gcd.reduce(values)) if len(values) else 1
    return Weights(values // unit, counts.astype(np.int64), unit)


def log_upper_tail(d: Weights, threshold: int, log_odds: float) -> float:
    """``log P[S >= threshold]``, at most 0; where ``d.exact`` is false, its Chernoff bound, which is never smaller.

    The Chernoff bound takes the moment generating function itself and so lies below Hoeffding's, which bounds it.

    Args:
        threshold: in the units of the original weights.
        log_odds: log(q / (1 - q)), finite.
    """
    least, total = d.steps(threshold), d.total
    if least <= 0:
        return 0.0
    if least > total:
        return -math.inf
    if least == total:
        return float(-d.users * np.logaddexp(0.0, -log_odds))
    theta, chernoff = _chernoff(d, least, log_odds)
    if not d.exact:
        return chernoff
    above = _masses_from(d, least, expit(log_odds + theta * d.values))
    share = float(above @ np.exp(-theta * np.arange(len(above))))
    return min(chernoff, chernoff + math.log(share)) if share > 0 else chernoff


def log_chernoff(d: Weights, threshold: int, log_odds: float) -> float:
    """The Chernoff bound on ``log P[S >= threshold]``. Arguments as in :func:`log_upper_tail`."""
    least = d.steps(threshold)
    if least <= 0 or least >= d.total:
        return log_upper_tail(d, threshold, log_odds)
    return _chernoff(d, least, log_odds)[1]


def _chernoff(d: Weights, least: int, log_odds: float) -> tuple[float, float]:
    """The tilt theta, and ``min over theta of log E[e^(theta (S - least))]``."""
    theta = _tilt(d, least, log_odds)
    grown = np.logaddexp(0.0, log_odds + theta * d.values) - np.logaddexp(0.0, log_odds)
    return theta, min(0.0, float(d.counts @ grown) - theta * least)


def _tilt(d: Weights, least: int, log_odds: float) -> float:
    """theta >= 0 at which the tilted mean of S is ``least``; 0 where the mean is there already."""

    def short(theta: float) -> float:
        return float((d.values * d.counts) @ expit(log_odds + theta * d.values)) - least

    if short(0.0) >= 0:
        return 0.0
    high = 1.0 / float(d.values[-1])
    while short(high) < 0:
        high *= 2
    return float(brentq(short, 0.0, high, xtol=1e-12, rtol=1e-9))


def _masses_from(d: Weights, least: int, q: Array) -> Array:
    """P[S = least], P[S = least + 1], ..., P[S = total] for coins of rate ``q``, (g,) one per distinct weight.

    The characteristic function at every frequency, in polar form, shifted by ``least`` so that phases stay small.
    """
    total = d.total
    size = next_fast_len(total + 1, real=True)
    spectrum = np.empty(size // 2 + 1, complex)
    for start in range(0, len(spectrum), _BLOCK):
        j = np.arange(start, min(start + _BLOCK, len(spectrum)))
        log_length, angle = np.zeros(len(j)), -2 * np.pi / size * ((j * least) % size)
        for value, count, rate in zip(d.values, d.counts, q, strict=True):
            turn = 2 * np.pi / size * ((j * value) % size)
            with np.errstate(divide="ignore"):
                log_length += 0.5 * count * np.log1p(-np.minimum(1.0, 4 * rate * (1 - rate) * np.sin(turn / 2) ** 2))
            angle += count * np.arctan2(rate * np.sin(turn), 1 - rate + rate * np.cos(turn))
        spectrum[j] = np.exp(log_length) * np.exp(-1j * angle)
    return np.maximum(irfft(spectrum, size)[: total - least + 1], 0.0)
