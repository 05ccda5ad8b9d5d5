import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coalmine.auditor import betting
from coalmine.protocol.errors import StudyError


@given(st.lists(st.floats(0, 1), min_size=1, max_size=300), st.floats(1e-4, 0.5), st.floats(-3, 3), st.floats(0.1, 9))
def test_bounds_surround_the_mean_and_follow_the_scale(draws, gamma, shift, width):
    x = np.array(draws)
    low, high = betting.mean_lower(x, 0, 1, gamma), betting.mean_upper(x, 0, 1, gamma)
    assert 0 <= low <= x.mean() + 1e-12
    assert x.mean() - 1e-12 <= high <= 1
    assert betting.mean_upper(1 - x, 0, 1, gamma) == pytest.approx(1 - low, abs=1e-9)
    moved = betting.mean_lower(shift + width * x, shift, shift + width, gamma)
    assert moved == pytest.approx(shift + width * low, abs=1e-6 * width)


def test_a_smaller_failure_probability_costs_width():
    x = np.random.default_rng(0).beta(1, 20, 5000)
    bounds = [betting.mean_upper(x, 0, 1, gamma) for gamma in (0.2, 0.05, 0.0025, 1e-6)]
    assert bounds == sorted(bounds)
    assert bounds[-1] < 1.2 * x.mean()


def test_draws_at_the_ends_of_their_range():
    zeros = np.zeros(10_000)
    assert betting.mean_lower(zeros, 0, 1, 0.01) == 0
    assert 0 < betting.mean_upper(zeros, 0, 1, 0.01) < 1e-3
    assert betting.mean_lower(zeros + 1, 0, 1, 0.01) > 1 - 1e-3
    assert betting.mean_upper(np.full(10, 0.3), 0.3, 0.3, 0.01) == 0.3, "known beforehand"
    assert betting.mean_lower(np.full(10_000, 1e-120), 0, 1, 0.01) == 0


def test_bad_draws_are_refused():
    for draws, gamma in (([], 0.1), ([0.5, 1.1], 0.1), ([-0.1], 0.1), ([np.nan], 0.1), ([0.5], 0.0), ([0.5], 1.0)):
        with pytest.raises(StudyError, match="needs"):
            betting.mean_lower(np.array(draws), 0.0, 1.0, gamma)
