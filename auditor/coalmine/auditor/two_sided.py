"""The two-sided audit: does a release hold the noise and the votes that the mechanism promises, no less and no more?

A bound on epsilon finds only what leaks more than claimed. These tests also find what is wrong and does not leak.
They look at the noise where nobody can vote, and at the mean score of canaries that are known to
be eligible. Each returns a p-value against the promise; both tails count.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtr, chdtrc, ndtr
from scipy.stats import kstest

from coalmine.protocol.errors import DataError

Array = NDArray[np.float64]


def variance_p_value(noise: Array, std: float) -> float:
    """Is the sum of squares that of independent normals with this standard deviation? Chi-square, exact.

    Args:
        noise: any shape, released values on coordinates that nobody can vote for. std: promised, sigma C.

    Raises:
        DataError: no value, or one that is not finite.
    """
    scaled = _scaled(noise, std)
    total = float(scaled @ scaled)
    return _both(float(chdtr(scaled.size, total)), float(chdtrc(scaled.size, total)))


def mean_p_value(noise: Array, std: float) -> float:
    """Is the mean that of independent normals around 0? Exact. Arguments and errors as :func:`variance_p_value`."""
    scaled = _scaled(noise, std)
    return _normal(float(scaled.sum()) / math.sqrt(scaled.size))


def normality_p_value(noise: Array, std: float) -> float:
    """Kolmogorov-Smirnov against N(0, std^2), limiting law. Arguments and errors as :func:`variance_p_value`."""
    return float(kstest(_scaled(noise, std), ndtr, method="asymp").pvalue)


def correlation_p_value(noise: Array, std: float) -> float:
    """Is the noise of a round independent of the round before? Products of consecutive rounds, normal approximation.

    Under the promise the products have mean 0, variance std^4, and no correlation among each other.

    Args:
        noise: (rounds, n) in the order of the rounds, two rounds or more. std: promised, sigma C.

    Raises:
        DataError: fewer than two rounds, or a value that is not finite.
    """
    if noise.ndim != 2 or len(noise) < 2:
        raise DataError(f"noise has shape {noise.shape}", where="two-sided audit", remedy="needs two rounds or more")
    scaled = _scaled(noise, std).reshape(noise.shape)
    products = scaled[1:] * scaled[:-1]
    return _normal(float(products.sum()) / math.sqrt(products.size))


def canary_mean_p_value(scores: Array, signal: float, q: float) -> float:
    """Is the mean of canaries' scores q times their signal? Normal approximation.

    Args:
        scores: any shape, independent scores of eligible canaries, scaled to noise of standard deviation 1, without
            background. signal: what a participating canary adds to its score. q: claimed participation rate.

    Raises:
        DataError: no score, or one that is not finite.
    """
    flat = _scaled(scores, 1.0)
    std = math.sqrt((1 + q * (1 - q) * signal**2) / flat.size)
    return _normal((float(flat.mean()) - q * signal) / std)


def _scaled(values: Array, std: float) -> Array:
    flat = np.asarray(values, float).ravel() / std
    if flat.size == 0 or not np.isfinite(flat).all():
        raise DataError("no value, or one that is not finite", where="two-sided audit", remedy="needs released values")
    return flat


def _both(low: float, high: float) -> float:
    return min(1.0, 2 * min(low, high))


def _normal(z: float) -> float:
    return min(1.0, 2 * float(ndtr(-abs(z))))
