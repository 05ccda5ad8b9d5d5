"""The largest epsilon that a number of models can show: a bound near its ceiling says nothing about safety."""

from __future__ import annotations

from coalmine.auditor import clopper_pearson
from coalmine.auditor.eps_bound import log_ratio


def ceiling(with_canary: int, without: int, delta: float, gamma: float) -> float:
    """The Clopper-Pearson bound of a test that never errs.

    At gamma = 0.05 per bound: 4.2 with 200 models on each side, 3.5 with 100, 8.1 with 10,000.

    Args:
        gamma: failure probability of each of the two bounds.

    Raises:
        StudyError: a value out of its range.
    """
    perfect = clopper_pearson.lower(with_canary, with_canary, gamma), clopper_pearson.upper(0, without, gamma)
    inverse = clopper_pearson.lower(without, without, gamma), clopper_pearson.upper(0, with_canary, gamma)
    return max(float(log_ratio(*perfect, delta)), float(log_ratio(*inverse, delta)))
