"""The Gaussian reading of one-run scores; its level and its power are tested in tests/statistical."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from coalmine.auditor import gdp
from coalmine.auditor.one_run_gaussian import gaussian_reading
from coalmine.protocol.errors import StudyError
from coalmine.protocol.privacy import Assurance

QUANTILES = norm.ppf((np.arange(2000) + 0.5) / 2000)


def test_many_scores_come_close_to_the_pair_and_never_above_their_fit():
    found = gaussian_reading(QUANTILES + 1, QUANTILES, 1e-5, 0.05)
    assert found.assurance is Assurance.HEURISTIC
    assert found.details["eps_fitted"] == pytest.approx(gdp.eps(1.0, 1e-5), rel=0.02)
    assert 0.8 * gdp.eps(1.0, 1e-5) < found.eps_lower < found.details["eps_fitted"]
    assert min(found.details["gaussian_in"], found.details["gaussian_out"]) > 0.5


def test_fewer_scores_and_a_higher_confidence_show_less():
    few = norm.ppf((np.arange(100) + 0.5) / 100)
    many = gaussian_reading(QUANTILES + 1, QUANTILES, 1e-5, 0.05).eps_lower
    assert gaussian_reading(few + 1, few, 1e-5, 0.05).eps_lower < many
    assert gaussian_reading(QUANTILES + 1, QUANTILES, 1e-5, 1e-4).eps_lower < many


def test_scores_can_be_shifted_and_stretched_together():
    reference = gaussian_reading(1.3 * QUANTILES + 1, QUANTILES, 1e-5, 0.05).eps_lower
    moved = gaussian_reading(7 + 3 * (1.3 * QUANTILES + 1), 7 + 3 * QUANTILES, 1e-5, 0.05).eps_lower
    assert moved == pytest.approx(reference, rel=1e-9)


def test_a_spread_of_its_own_is_seen_without_a_shift():
    assert gaussian_reading(3 * QUANTILES, QUANTILES, 1e-5, 0.05).eps_lower > 1
    assert gaussian_reading(QUANTILES, QUANTILES, 1e-5, 0.05).eps_lower == 0
    assert gaussian_reading(QUANTILES - 1, QUANTILES, 1e-5, 0.05).eps_lower == 0, "included canaries score higher"


def test_a_mixture_is_told_from_a_gaussian():
    mixture = np.where(np.arange(2000) % 10 == 0, QUANTILES + 5, QUANTILES)
    assert gaussian_reading(mixture, QUANTILES, 1e-5, 0.05).details["gaussian_in"] < 1e-6


@pytest.mark.parametrize("inside", [[], [1.0], [1.0, 1.0]])
def test_where_nothing_can_be_fitted_nothing_is_shown(inside):
    found = gaussian_reading(np.array(inside), QUANTILES, 1e-5, 0.05)
    assert found.eps_lower == 0
    assert found.details == {"in": len(inside), "out": 2000}


@pytest.mark.parametrize(
    ("score", "delta", "level", "said"),
    [(math.nan, 1e-5, 0.05, "not a number"), (1.0, 0.0, 0.05, "delta"), (1.0, 1e-5, 1.0, "level")],
)
def test_what_is_out_of_range_is_refused(score, delta, level, said):
    with pytest.raises(StudyError, match=said):
        gaussian_reading(np.array([0.0, score]), QUANTILES, delta, level)
