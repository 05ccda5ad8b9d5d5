"""Where the decision threshold comes from: calibration users only (arXiv 2609.13499, section 2.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betainccinv, betaincinv, ndtr

from coalmine.auditor.background import Array
from coalmine.auditor.cohorts import background_sums
from coalmine.auditor.eps_bound import Terms, eps_from_bounds
from coalmine.auditor.exact import Rates, tpr_fpr
from coalmine.auditor.score import Score
from coalmine.protocol.errors import DataError, StudyError

_COARSE = 769
_FINE = 129
_PILOT = 8_000
_PILOT_POINTS = 65
_REACH = 12.0
"""Thresholds are looked for this many standard deviations around either hypothesis."""


@dataclass(frozen=True)
class Threshold:
    """A decision ``T > value``, fixed before any test user is looked at.

    Attributes:
        value: threshold on T.
        mix: the same threshold on ``ell_mix``.
        tpr, fpr: exact rates of the decision on the population that the calibration users stand for.
        eps_expected: the Clopper-Pearson bound there if both counts came out as expected.
    """

    value: float
    mix: float
    tpr: float
    fpr: float
    eps_expected: float


def multiplicities(population: int, users: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """(users,) how many of N users each one stands for: ``N // users``, and one more for the first ``N % users``."""
    share, rest = divmod(population, users)
    return np.where(np.arange(users) < rest, share + 1, share).astype(np.int64)


def calibrate(
    score: Score,
    votes: Array,
    population: int,
    trials: int,
    terms: Terms,
) -> Threshold:
    """The threshold at which ``trials`` trials per hypothesis are expected to certify most.

    Each calibration user stands for several of the N users, in the given order, and each of those takes part on its
    own: the background has the right mean and variance. The law of T there is exact, so nothing is drawn; a grid over
    both tails, then two finer ones around the best point, maximise the bound at the expected counts.

    Args:
        score: of the canary, designed on auxiliary users.
        votes: (n_cal, r) float64, calibration users' clipped votes on the audited coordinates.
        population: N >= 0.
        trials, terms: of the test that will use the threshold.

    Raises:
        DataError: no calibration user, or a canary without a vote on the coordinates.
        StudyError: trials, delta or alpha out of range.
    """
    if len(votes) == 0:
        raise DataError(
            "no calibration user", where="calibration", remedy="split off at least one user for calibration"
        )
    if not score.signal > 0:
        raise DataError(
            "the canary has no vote on the audited coordinates, so no threshold can show it",
            where="calibration",
            remedy="audit coordinates that the canary votes for",
        )
    projections = np.repeat(score.project(votes), multiplicities(population, len(votes)))
    q, tau = score.q, score.noise_std
    mean = q * float(projections.sum())
    std = float(np.sqrt(tau**2 + q * (1 - q) * float(projections @ projections)))
    low, high, points = mean - _REACH * std, mean + score.signal + _REACH * std, _COARSE
    if trials < 1:
        raise StudyError(f"{trials} trials", where="audit.trials", remedy="needs at least one trial")
    for _ in range(3):
        grid = np.linspace(low, high, points)
        rates = tpr_fpr(projections, score.signal, tau, q, grid)
        expected = expected_bound(rates, trials, terms.delta, terms.gamma)
        best = int(np.argmax(expected))
        step, points = (high - low) / (points - 1), _FINE
        low, high = grid[best] - step, grid[best] + step
    value = float(grid[best])
    return Threshold(
        value=value,
        mix=score.mix_threshold(value),
        tpr=float(rates.tpr[best]),
        fpr=float(rates.fpr[best]),
        eps_expected=float(expected[best]),
    )


def expected_bound(rates: Rates, trials: int, delta: float, gamma: float) -> Array:
    """The Clopper-Pearson bound at the expected counts, which need not be whole: the Beta quantiles interpolate."""

    def low(rate: Array) -> Array:
        counts = trials * rate
        return np.where(counts > 0, betaincinv(np.maximum(counts, 1e-9), trials - counts + 1, gamma), 0.0)

    def high(rate: Array) -> Array:
        counts = trials * rate
        return np.where(counts < trials, betainccinv(counts + 1, np.maximum(trials - counts, 1e-9), gamma), 1.0)

    return eps_from_bounds(low(rates.tpr), high(rates.fpr), low(1 - rates.fpr), high(1 - rates.tpr), delta)


def calibrate_reduced(
    score: Score,
    votes: Array,
    population: int,
    trials: int,
    terms: Terms,
    rng: np.random.Generator,
) -> float:
    """The threshold on T at which ``trials`` variance-reduced trials are expected to certify most.

    A pilot draws cohorts of the population that the calibration users stand for; means and variances of the conditional
    probabilities there predict the bound (Bernstein's shape: a variance term and a range term). The prediction only
    chooses the threshold; the bound itself is proved on other trials.

    Args:
        score, votes, population, terms: as for ``calibrate``. trials: variance-reduced, per hypothesis.
        rng: of the pilot.
    """
    projections = np.repeat(score.project(votes), multiplicities(population, len(votes)))
    q, tau = score.q, score.noise_std
    sums = background_sums(rng, projections, q, _PILOT)
    reach = float(projections[projections > 0].sum())
    logs = -math.log(terms.gamma)
    spread = math.hypot(tau, float(sums.std()))
    grid = np.linspace(sums.mean() - 4 * spread, sums.mean() + score.signal + _REACH * spread, _PILOT_POINTS)
    expected = np.empty(len(grid))
    for index, level in enumerate(grid):
        absent = ndtr((sums - level) / tau)
        present = (1 - q) * absent + q * ndtr((sums + score.signal - level) / tau)
        top = float(ndtr((reach + score.signal - level) / tau))
        wide_absent, wide_present = (
            math.sqrt(2 * float(values.var()) * logs / trials) + top * logs / trials for values in (absent, present)
        )
        tpr_low, fpr_high = present.mean() - wide_present, absent.mean() + wide_absent
        expected[index] = eps_from_bounds(tpr_low, fpr_high, 1 - fpr_high, 1 - tpr_low, terms.delta)
    return float(grid[int(np.argmax(expected))])
