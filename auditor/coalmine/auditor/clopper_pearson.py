"""One-sided Clopper-Pearson bounds on a probability (Clopper and Pearson 1934)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainccinv, betaincinv

from coalmine.protocol.errors import StudyError


def lower(x: ArrayLike, n: int, gamma: float) -> NDArray[np.float64]:
    """Lower bound: at most ``gamma`` of all experiments put it above the true probability.

    ``p_L = 0 if x = 0 else BetaInv(gamma; x, n - x + 1)``.

    Args:
        x: successes, any shape, integers in [0, n].
        n: trials, >= 1.
        gamma: failure probability in (0, 1).

    Raises:
        StudyError: a value out of its range.
    """
    successes = _checked(x, n, gamma)
    some = np.maximum(successes, 1)
    return np.where(successes == 0, 0.0, betaincinv(some, n - some + 1, gamma))


def upper(x: ArrayLike, n: int, gamma: float) -> NDArray[np.float64]:
    """Upper bound: at most ``gamma`` of all experiments put it below the true probability.

    ``p_U = 1 if x = n else BetaInv(1 - gamma; x + 1, n - x)``. Arguments and errors as in :func:`lower`.
    """
    successes = _checked(x, n, gamma)
    short = np.minimum(successes, n - 1)
    return np.where(successes == n, 1.0, betainccinv(short + 1, n - short, gamma))


def _checked(x: ArrayLike, n: int, gamma: float) -> NDArray[np.int64]:
    successes = np.asarray(x)
    if n < 1:
        raise StudyError(f"{n} trials", where="n", remedy="needs at least one trial")
    if not 0 < gamma < 1:
        raise StudyError(f"{gamma!r} is not allowed", where="gamma", remedy="needs a failure probability in (0, 1)")
    if not np.issubdtype(successes.dtype, np.integer):
        raise StudyError("a count is not a whole number", where="x", remedy="needs integers from 0 to n")
    if successes.size and (successes.min() < 0 or successes.max() > n):
        raise StudyError("a count lies outside the trials", where="x", remedy=f"needs integers from 0 to {n}")
    return successes.astype(np.int64)
