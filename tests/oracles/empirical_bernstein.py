"""Empirical Bernstein bound (Maurer and Pontil 2009, Theorem 4), the yardstick for betting."""

import numpy as np


def mean_lower(draws, low, high, gamma):
    x = (np.asarray(draws) - low) / (high - low)
    n = len(x)
    evidence = np.log(2 / gamma)
    bound = x.mean() - np.sqrt(2 * x.var(ddof=1) * evidence / n) - 7 * evidence / (3 * (n - 1))
    return low + (high - low) * max(0.0, float(bound))


def mean_upper(draws, low, high, gamma):
    return -mean_lower(-np.asarray(draws), -high, -low, gamma)
