"""What every two-sided test says of right and of wrong values. Levels are tested in tests/statistical."""

import numpy as np
import pytest
from scipy.stats import chi2, norm

from coalmine.auditor import two_sided
from coalmine.protocol.errors import DataError

NOISE = 0.1 * np.random.default_rng(1).standard_normal((50, 200))


def test_p_values_are_those_of_the_laws():
    total = float((NOISE**2).sum() / 0.01)
    assert two_sided.variance_p_value(NOISE, 0.1) == pytest.approx(
        2 * min(chi2.cdf(total, NOISE.size), chi2.sf(total, NOISE.size)), rel=1e-9
    )
    z = NOISE.sum() / 0.1 / np.sqrt(NOISE.size)
    assert two_sided.mean_p_value(NOISE, 0.1) == pytest.approx(2 * norm.sf(abs(z)), rel=1e-9)


@pytest.mark.parametrize(
    "test",
    [two_sided.variance_p_value, two_sided.mean_p_value, two_sided.normality_p_value, two_sided.correlation_p_value],
)
def test_right_noise_is_accepted(test):
    assert test(NOISE, 0.1) > 1e-4


@pytest.mark.parametrize("factor", [2 / 3, 3 / 2])
def test_wrong_spread_is_found_on_both_sides(factor):
    assert two_sided.variance_p_value(NOISE * factor, 0.1) < 1e-12
    assert two_sided.normality_p_value(NOISE * factor, 0.1) < 1e-12


@pytest.mark.parametrize("sign", [1, -1])
def test_a_shift_is_found_on_both_sides(sign):
    assert two_sided.mean_p_value(NOISE + sign * 0.01, 0.1) < 1e-12


def test_the_right_variance_with_a_wrong_shape_is_found():
    uniform = np.random.default_rng(2).uniform(-np.sqrt(0.03), np.sqrt(0.03), NOISE.shape)
    assert two_sided.variance_p_value(uniform, 0.1) > 1e-12
    assert two_sided.normality_p_value(uniform, 0.1) < 1e-12


@pytest.mark.parametrize("sign", [1, -1])
def test_noise_that_depends_on_the_round_before_is_found(sign):
    reused = NOISE.copy()
    reused[1::2] = sign * reused[::2]
    assert two_sided.correlation_p_value(reused, 0.1) < 1e-12
    assert two_sided.variance_p_value(NOISE, 0.1) > 1e-6


@pytest.mark.parametrize("q", [0.1, 0.5])
def test_means_of_canaries(q):
    rng = np.random.default_rng(3)
    scores = rng.standard_normal(40_000) + 1.5 * (rng.random(40_000) < q)
    assert two_sided.canary_mean_p_value(scores, 1.5, q) > 1e-4
    assert two_sided.canary_mean_p_value(scores, 1.5, q + 0.05) < 1e-8
    assert two_sided.canary_mean_p_value(scores, 1.5, q - 0.05) < 1e-8


def test_nothing_is_no_evidence():
    for values in (np.empty(0), np.array([np.nan])):
        with pytest.raises(DataError):
            two_sided.variance_p_value(values, 1.0)
    with pytest.raises(DataError, match="two rounds"):
        two_sided.correlation_p_value(NOISE[:1], 0.1)
