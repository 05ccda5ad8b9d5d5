"""The threshold comes from calibration users alone, and is the best one there."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coalmine.auditor.calibration import calibrate, multiplicities
from coalmine.auditor.eps_bound import Split, Terms, eps_lower, eps_lower_scan
from coalmine.auditor.exact import exact_epsilon, tpr_fpr
from coalmine.auditor.moments import moments
from coalmine.auditor.score import score
from coalmine.protocol.errors import DataError, StudyError
from coalmine.protocol.privacy import Mechanism

TRIALS, TERMS = 100_000, Terms(1e-5, 0.01)


def setting(seed=0, users=40, q=0.1, size=0.02):
    rng = np.random.default_rng(seed)
    mechanism = Mechanism(q=q)
    votes = rng.random((users, 6)) * (rng.random((users, 6)) < 0.2) * size
    canary = np.full(6, 0.1 / np.sqrt(6))
    return score(moments(votes, 100, mechanism), canary, mechanism), votes


@given(st.integers(0, 500), st.integers(1, 60))
def test_calibration_users_stand_for_exactly_n_users_as_evenly_as_possible(population, users):
    found = multiplicities(population, users)
    assert found.sum() == population
    assert found.max() - found.min() <= 1
    assert (np.diff(found) <= 0).all()


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.sampled_from([0.1, 0.5, 0.9]), st.sampled_from(list(Split)))
def test_no_threshold_on_a_dense_grid_promises_more(seed, q, split):
    designed, votes = setting(seed, q=q)
    found = calibrate(designed, votes, 100, TRIALS, replace(TERMS, split=split))
    projections = np.repeat(designed.project(votes), multiplicities(100, len(votes)))
    grid = np.linspace(projections.min() * 100 - 5, projections.sum() + designed.signal + 5, 2_000)
    rates = tpr_fpr(projections, designed.signal, designed.noise_std, q, grid)
    trials = TRIALS
    # Whole counts on the unfavourable side of the expected ones promise no more than the expected ones.
    tp, fp = np.floor(trials * rates.tpr).astype(int), np.ceil(trials * rates.fpr).astype(int)
    dense = eps_lower_scan(tp, fp, trials, trials, TERMS.delta, TERMS.alpha, split)
    assert found.eps_expected >= dense.max() - 1e-3
    rates = tpr_fpr(projections, designed.signal, designed.noise_std, q, found.value)
    assert (found.tpr, found.fpr) == pytest.approx((rates.tpr[0], rates.fpr[0]), abs=1e-12)
    worst, best = (
        eps_lower(int(tp), int(fp), trials, trials, TERMS.delta, TERMS.alpha, split).eps_lower
        for tp, fp in (
            (np.floor(trials * found.tpr), np.ceil(trials * found.fpr)),
            (np.ceil(trials * found.tpr), np.floor(trials * found.fpr)),
        )
    )
    assert worst - 1e-9 <= found.eps_expected <= best + 1e-9


def test_the_expected_bound_grows_with_trials_towards_the_exact_epsilon():
    designed, votes = setting()
    expected = [calibrate(designed, votes, 100, trials, TERMS).eps_expected for trials in (10**4, 10**6, 10**9)]
    projections = np.repeat(designed.project(votes), multiplicities(100, 40))
    exact = exact_epsilon(projections, designed.signal, designed.noise_std, 0.1, 1e-5)
    assert expected[0] < expected[1] < expected[2] <= exact.upper


def test_both_scales_name_the_same_threshold():
    designed, votes = setting()
    found = calibrate(designed, votes, 100, TRIALS, TERMS)
    assert found.mix == designed.mix_threshold(found.value)


def test_impossible_calibrations_are_refused():
    designed, votes = setting()
    with pytest.raises(DataError, match="no calibration user"):
        calibrate(designed, votes[:0], 100, TRIALS, TERMS)
    silent = score(moments(votes, 100, Mechanism()), np.zeros(6), Mechanism())
    with pytest.raises(DataError, match="no vote"):
        calibrate(silent, votes, 100, TRIALS, TERMS)
    with pytest.raises(StudyError, match="trials"):
        calibrate(designed, votes, 100, 0, TERMS)
