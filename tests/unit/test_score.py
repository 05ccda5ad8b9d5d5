"""Moments and score."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coalmine.auditor.moments import Moments, moments
from coalmine.auditor.score import score
from coalmine.protocol.errors import DataError
from coalmine.protocol.privacy import Mechanism

SEEDS = st.integers(0, 2**32 - 1)
MECHANISM = Mechanism(q=0.2, sigma=0.8)


def designed(seed, r=5, users=30, population=200, mechanism=MECHANISM):
    rng = np.random.default_rng(seed)
    votes = rng.random((users, r)) * (rng.random((users, r)) < 0.4) * 0.04
    canary = rng.random(r) * 0.05
    return votes, canary, moments(votes, population, mechanism), rng


def test_moments_are_the_sums_of_the_method():
    votes, _, found, _ = designed(1)
    q, scale = MECHANISM.q, 200 / 30
    mean = sum(q * scale * c for c in votes)
    covariance = sum(q * (1 - q) * scale * np.outer(c, c) for c in votes) + 0.08**2 * np.eye(5)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-12)


def test_moments_of_every_user_are_those_of_the_release():
    votes, _, found, rng = designed(2, users=6, population=6)
    taking_part = rng.random((200_000, 6)) < MECHANISM.q
    releases = taking_part @ votes + MECHANISM.noise_std * rng.normal(size=(200_000, 5))
    error = 6 * np.sqrt(np.diag(found.covariance) / len(releases))
    assert (np.abs(releases.mean(axis=0) - found.mean) < error).all()
    np.testing.assert_allclose(np.cov(releases.T), found.covariance, atol=2e-4)


def test_nobody_leaves_the_noise():
    alone = moments(np.empty((0, 3)), 0, MECHANISM)
    np.testing.assert_array_equal(alone.covariance, MECHANISM.noise_std**2 * np.eye(3))
    np.testing.assert_array_equal(alone.mean, np.zeros(3))
    with pytest.raises(DataError, match="shape"):
        moments(np.empty((0, 3)), 5, MECHANISM)
    with pytest.raises(DataError, match="finite"):
        moments(np.full((1, 3), np.nan), 5, MECHANISM)


@settings(max_examples=50)
@given(SEEDS, st.sampled_from([1, 5, 80]))
def test_the_score_is_the_log_ratio_of_two_normals(seed, r):
    _, canary, background, rng = designed(seed, r)
    found = score(background, canary, MECHANISM)
    releases = background.mean + rng.normal(size=(4, r)) * 0.1
    inverse = np.linalg.inv(background.covariance)

    def log_density(y, mean):
        return -0.5 * (y - mean) @ inverse @ (y - mean)

    expected = [log_density(y, background.mean + canary) - log_density(y, background.mean) for y in releases]
    np.testing.assert_allclose(found.ell(releases), expected, rtol=1e-9, atol=1e-9)
    q = MECHANISM.q
    np.testing.assert_allclose(found.ell_mix(releases), np.log(1 - q + q * np.exp(expected)), rtol=1e-9, atol=1e-9)
    assert found.mu_eff == pytest.approx(math.sqrt(canary @ inverse @ canary), rel=1e-9)
    assert found.mu_eff <= np.linalg.norm(canary) / MECHANISM.noise_std * (1 + 1e-12)  # paper, E.4
    assert found.noise_std == pytest.approx(MECHANISM.noise_std * np.linalg.norm(inverse @ canary), rel=1e-9)


@settings(max_examples=50)
@given(SEEDS, st.floats(-30, 30), st.sampled_from([0.05, 0.5, 1.0]))
def test_thresholds_on_both_scales_decide_alike(seed, ell, q):
    _, canary, background, _ = designed(seed)
    found = score(background, canary, Mechanism(q=q))
    threshold = ell + found.offset
    mixed = found.mix_threshold(threshold)
    if ell > -10:  # further down ell_mix is log(1-q) to the last digits
        assert found.linear_threshold(mixed) == pytest.approx(threshold, abs=1e-9)
    assert found.mix_threshold(threshold + 1) >= mixed


def test_extreme_scores_do_not_overflow():
    found = score(Moments(np.zeros(1), np.eye(1)), np.ones(1), Mechanism(q=0.1))
    assert found.mix(np.array([2000.0]))[0] == pytest.approx(2000 + math.log(0.1))
    assert found.mix(np.array([-2000.0]))[0] == pytest.approx(math.log(0.9))
    assert found.linear_threshold(2000.0) == pytest.approx(2000 - math.log(0.1) + found.offset)
    assert found.linear_threshold(math.log(0.9) - 0.1) == -math.inf


def test_a_canary_without_votes_has_no_score():
    found = score(Moments(np.zeros(2), np.eye(2)), np.zeros(2), MECHANISM)
    assert (found.mu_eff, found.noise_std, found.signal) == (0, 0, 0)


def test_bad_input_is_refused():
    with pytest.raises(DataError, match="coordinates"):
        score(Moments(np.zeros(2), np.eye(2)), np.zeros(3), MECHANISM)
    with pytest.raises(DataError, match="positive definite"):
        score(Moments(np.zeros(2), np.zeros((2, 2))), np.ones(2), MECHANISM)
