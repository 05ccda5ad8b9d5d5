"""The Gaussian reading where its model is true, and where it is not.

Counts are compared with the 1e-8 quantile of the binomial at the nominal level. Two-sided: without its margin the fit
exceeds the truth most of the time (two spreads never come out alike, and any difference adds to epsilon), and the
reading finds what is there.
"""

import numpy as np
import pytest
from scipy.stats import binom

from coalmine.auditor import gdp
from coalmine.auditor.one_run import steinke_eps_lower
from coalmine.auditor.one_run_gaussian import gaussian_reading
from coalmine.auditor.one_run_pe import guess
from coalmine.auditor.one_run_plan import model_scores
from coalmine.protocol.privacy import Mechanism

pytestmark = pytest.mark.statistical

REPETITIONS = 150
LEVEL = 0.05
DELTA = 1e-5
AT_MOST = binom.isf(1e-8, REPETITIONS, LEVEL)


def test_the_null():
    """Scores that know nothing: a positive reading at most at the level, a positive fit nearly always."""
    rng = np.random.default_rng(1)
    positive, fitted = 0, 0
    for _ in range(REPETITIONS):
        found = gaussian_reading(rng.standard_normal(100), rng.standard_normal(100), DELTA, LEVEL)
        positive += found.eps_lower > 0
        fitted += found.details["eps_fitted"] > 0
    assert positive <= AT_MOST
    assert fitted > 0.9 * REPETITIONS


def test_full_participation_is_read_within_its_margin_and_better_than_by_counting():
    """With q = 1 a score is Gaussian: the reading keeps its level and beats Steinke's bound on the same scores."""
    mechanism, m, say = Mechanism(q=1.0, sigma=1.0), 400, 40
    truth = gdp.eps(1 / mechanism.sigma, DELTA)
    rng = np.random.default_rng(2)
    wrong, fitted, better = 0, 0, 0
    for _ in range(REPETITIONS):
        included = rng.random(m) < 0.5
        scores = model_scores(mechanism, 1, 5, included, rng)
        found = gaussian_reading(scores[included], scores[~included], DELTA, LEVEL)
        wrong += found.eps_lower > truth
        fitted += found.details["eps_fitted"] > truth
        better += found.eps_lower > steinke_eps_lower(guess(scores, included, say, say), DELTA, LEVEL)
    assert wrong <= AT_MOST
    assert fitted > 0.8 * REPETITIONS
    assert better > 0.9 * REPETITIONS


def test_half_the_claimed_noise_is_found():
    promised = gdp.eps(1.0, DELTA)
    rng = np.random.default_rng(3)
    found = 0
    for _ in range(REPETITIONS):
        inside, outside = rng.standard_normal(300) + 2, rng.standard_normal(300)
        found += gaussian_reading(inside, outside, DELTA, LEVEL).eps_lower > promised
    assert found > 0.99 * REPETITIONS
