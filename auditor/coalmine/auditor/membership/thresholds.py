"""All tests "score at least t" on two samples of scores, and their error counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coalmine.protocol.errors import StudyError


@dataclass(frozen=True, eq=False)
class Sweep:
    """Counts of the answer "present" at every distinct threshold, thresholds ascending.

    Attributes:
        thresholds: (k,) distinct scores of both sides.
        tp: (k,) models with the canary that score at least the threshold. fp: (k,) those without.
        with_canary, without: how many models there are.
    """

    thresholds: NDArray[np.float64]
    tp: NDArray[np.int64]
    fp: NDArray[np.int64]
    with_canary: int
    without: int


def sweep(present: ArrayLike, absent: ArrayLike) -> Sweep:
    """Every test on (n1,) scores of models with the canary and (n0,) scores of models without.

    Raises:
        StudyError: a side is empty or a score is not a number.
    """
    one, zero = (np.sort(np.asarray(side, np.float64).ravel()) for side in (present, absent))
    if not len(one) or not len(zero):
        raise StudyError("a side has no model", where="shadow models", remedy="needs scores with and without canary")
    if np.isnan(one).any() or np.isnan(zero).any():
        raise StudyError("a score is not a number", where="shadow models", remedy="a diverged model cannot be audited")
    thresholds = np.unique(np.concatenate([one, zero]))
    return Sweep(
        thresholds,
        (len(one) - np.searchsorted(one, thresholds)).astype(np.int64),
        (len(zero) - np.searchsorted(zero, thresholds)).astype(np.int64),
        len(one),
        len(zero),
    )


def counts_at(present: ArrayLike, absent: ArrayLike, threshold: float) -> tuple[int, int]:
    """(tp, fp) of one threshold."""
    return int((np.asarray(present) >= threshold).sum()), int((np.asarray(absent) >= threshold).sum())


def halves(n: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Model numbers 0 ... n - 1 in two random halves: to choose a test, and to report it."""
    order = rng.permutation(n).astype(np.int64)
    return order[: n // 2], order[n // 2 :]
