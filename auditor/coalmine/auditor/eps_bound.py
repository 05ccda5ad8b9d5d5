"""From error rates of a membership test to a lower bound on epsilon (paper, section 2 and appendix E.6).

eps_lower = max(0, log((TPR_L - delta) / FPR_U), log((TNR_L - delta) / FNR_U))
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coalmine.auditor import clopper_pearson
from coalmine.protocol.errors import StudyError

Array = NDArray[np.float64]


class Split(StrEnum):
    """How the failure probability alpha is shared among the bounds.

    FOUR: alpha/4 for each of TPR_L, FPR_U, TNR_L, FNR_U, as in the paper.
    TWO: alpha/2 each. TPR_L = 1 - FNR_U and TNR_L = 1 - FPR_U are the same two events, so nothing more is needed.
    """

    FOUR = "four"
    TWO = "two"

    def gamma(self, alpha: float) -> float:
        """The failure probability of one bound.

        Raises:
            StudyError: alpha outside (0, 1).
        """
        if not 0 < alpha < 1:
            raise StudyError(f"{alpha!r} is not allowed", where="alpha", remedy="needs a failure probability in (0, 1)")
        return alpha / (4 if self is Split.FOUR else 2)


@dataclass(frozen=True)
class Terms:
    """What a bound is asked to hold for, so that whoever chooses a threshold and whoever uses it mean the same bound.

    Attributes:
        delta: in [0, 1). alpha: failure probability of the whole statement. split: how alpha is shared.
    """

    delta: float
    alpha: float
    split: Split = Split.FOUR

    @property
    def gamma(self) -> float:
        """The failure probability of one rate's bound.

        Raises:
            StudyError: alpha outside (0, 1).
        """
        return self.split.gamma(self.alpha)


class Direction(StrEnum):
    """Which answer of the test carries the bound."""

    PRESENT = "present"
    """log((TPR_L - delta) / FPR_U)"""
    ABSENT = "absent"
    """log((TNR_L - delta) / FNR_U)"""
    NEITHER = "neither"
    """The bound is 0."""


@dataclass(frozen=True)
class EpsBound:
    """A lower bound on epsilon, wrong with probability at most alpha, and what it was made of.

    Attributes:
        eps_lower: >= 0.
        direction: the answer of the test that carries the bound.
        tpr_lower, fpr_upper, tnr_lower, fnr_upper: one-sided bounds, each at failure probability ``gamma``.
        split: how alpha was shared.
        method: which bound was used for the rates.
    """

    eps_lower: float
    direction: Direction
    tpr_lower: float
    fpr_upper: float
    tnr_lower: float
    fnr_upper: float
    gamma: float
    split: Split
    method: str


def log_ratio(lower: ArrayLike, upper: ArrayLike, delta: float) -> Array:
    """``max(0, log((lower - delta) / upper))``: 0 where lower <= delta, infinite where only upper is 0. Any shape."""
    surplus, upper = np.maximum(np.asarray(lower, float) - delta, 0.0), np.asarray(upper, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(surplus > 0, surplus / upper, 0.0)
        return np.log(np.maximum(ratio, 1.0))


def eps_from_bounds(
    tpr_lower: ArrayLike, fpr_upper: ArrayLike, tnr_lower: ArrayLike, fnr_upper: ArrayLike, delta: float
) -> Array:
    """The formula above for bounds of any common shape; for scans over thresholds."""
    return np.maximum(log_ratio(tpr_lower, fpr_upper, delta), log_ratio(tnr_lower, fnr_upper, delta))


def bound_from_rates(
    tpr_lower: float,
    fpr_upper: float,
    tnr_lower: float,
    fnr_upper: float,
    delta: float,
    gamma: float,
    split: Split,
    method: str,
) -> EpsBound:
    """The bound that four one-sided bounds on the rates carry."""
    present, absent = float(log_ratio(tpr_lower, fpr_upper, delta)), float(log_ratio(tnr_lower, fnr_upper, delta))
    best = max(present, absent)
    direction = Direction.NEITHER if best == 0 else Direction.PRESENT if present >= absent else Direction.ABSENT
    return EpsBound(best, direction, tpr_lower, fpr_upper, tnr_lower, fnr_upper, gamma, split, method)


def eps_lower(tp: int, fp: int, n1: int, n0: int, delta: float, alpha: float, split: Split = Split.FOUR) -> EpsBound:
    """Clopper-Pearson bound on epsilon from one test at one threshold fixed beforehand.

    Args:
        tp: answers "present" among the ``n1`` trials with an eligible canary.
        fp: answers "present" among the ``n0`` trials without.
        delta: in [0, 1).
        alpha: failure probability of the whole statement, in (0, 1).

    Raises:
        StudyError: a value out of its range.
    """
    gamma = split.gamma(alpha)
    for name, answers, trials in (("tp", tp, n1), ("fp", fp, n0)):
        if not 0 <= answers <= trials:
            raise StudyError(f"{answers} of {trials} trials", where=name, remedy=f"needs 0 to {trials} answers")
    tpr_lower, fpr_upper, tnr_lower, fnr_upper = _rates(np.array([tp]), np.array([fp]), n1, n0, delta, gamma)
    return bound_from_rates(
        float(tpr_lower[0]),
        float(fpr_upper[0]),
        float(tnr_lower[0]),
        float(fnr_upper[0]),
        delta,
        gamma,
        split,
        "clopper-pearson",
    )


def eps_lower_scan(
    tp: ArrayLike, fp: ArrayLike, n1: int, n0: int, delta: float, alpha: float, split: Split = Split.FOUR
) -> Array:
    """:func:`eps_lower` for counts of many thresholds at once, values only.

    For choosing a threshold. The largest value is no bound: the choice must be confirmed on other trials.
    """
    return eps_from_bounds(*_rates(np.asarray(tp), np.asarray(fp), n1, n0, delta, split.gamma(alpha)), delta)


def _rates(
    tp: NDArray[np.int64], fp: NDArray[np.int64], n1: int, n0: int, delta: float, gamma: float
) -> tuple[Array, Array, Array, Array]:
    if not 0 <= delta < 1:
        raise StudyError(f"{delta!r} is not allowed", where="delta", remedy="needs a probability in [0, 1)")
    return (
        clopper_pearson.lower(tp, n1, gamma),
        clopper_pearson.upper(fp, n0, gamma),
        clopper_pearson.lower(n0 - fp, n0, gamma),
        clopper_pearson.upper(n1 - tp, n1, gamma),
    )
