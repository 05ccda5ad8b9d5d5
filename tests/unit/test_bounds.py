import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc, ndtr

from coalmine.auditor import clopper_pearson, gdp
from coalmine.auditor.bisection import last_true
from coalmine.auditor.eps_bound import Direction, Split, eps_from_bounds, eps_lower, eps_lower_scan, log_ratio
from coalmine.protocol.errors import StudyError

LEVELS = st.floats(1e-6, 0.5)


@st.composite
def counts(draw):
    n = draw(st.integers(1, 2_000_000))
    return draw(st.integers(0, n)), n


@given(counts(), LEVELS)
def test_clopper_pearson_bounds_are_where_the_binomial_tail_equals_gamma(count, gamma):
    x, n = count
    low, high = float(clopper_pearson.lower(x, n, gamma)), float(clopper_pearson.upper(x, n, gamma))
    assert low <= x / n <= high
    assert low == pytest.approx(1 - float(clopper_pearson.upper(n - x, n, gamma)), abs=1e-12)
    if x > 0:
        assert betainc(x, n - x + 1, low) == pytest.approx(gamma, rel=1e-7)
    else:
        assert low == 0
    if x < n:
        assert betainc(n - x, x + 1, 1 - high) == pytest.approx(gamma, rel=1e-3)
    else:
        assert high == 1


def test_clopper_pearson_takes_arrays_of_any_shape_and_keeps_the_order():
    x = np.arange(0, 101).reshape(1, -1)
    low, high = clopper_pearson.lower(x, 100, 0.01), clopper_pearson.upper(x, 100, 0.01)
    assert low.shape == high.shape == x.shape
    assert (np.diff(low) > 0).all()
    assert (np.diff(high) > 0).all()


@pytest.mark.parametrize(
    ("x", "n", "gamma"),
    [(-1, 10, 0.1), (11, 10, 0.1), (1.5, 10, 0.1), (0, 0, 0.1), (1, 10, 0), (1, 10, 1), (1, 10, math.nan)],
)
def test_clopper_pearson_refuses_what_is_no_count(x, n, gamma):
    for bound in (clopper_pearson.lower, clopper_pearson.upper):
        with pytest.raises(StudyError, match="needs"):
            bound(x, n, gamma)


def test_eps_lower_of_both_directions():
    present = eps_lower(tp=300, fp=10, n1=1000, n0=1000, delta=1e-5, alpha=0.01)
    assert present.direction is Direction.PRESENT
    assert present.eps_lower == pytest.approx(math.log((present.tpr_lower - 1e-5) / present.fpr_upper), rel=1e-12)
    absent = eps_lower(tp=990, fp=700, n1=1000, n0=1000, delta=1e-5, alpha=0.01)
    assert absent.direction is Direction.ABSENT
    assert absent.eps_lower == pytest.approx(present.eps_lower, rel=1e-9), "the same test with the answers exchanged"
    neither = eps_lower(tp=100, fp=100, n1=1000, n0=1000, delta=1e-5, alpha=0.01)
    assert (neither.eps_lower, neither.direction) == (0.0, Direction.NEITHER)


@given(counts(), counts(), st.floats(0, 0.1), st.floats(1e-4, 0.5))
def test_two_bounds_are_never_worse_than_four_and_more_delta_is_never_better(present, absent, delta, alpha):
    (tp, n1), (fp, n0) = present, absent
    four, two = (eps_lower(tp, fp, n1, n0, delta, alpha, split) for split in (Split.FOUR, Split.TWO))
    assert (four.gamma, two.gamma) == (alpha / 4, alpha / 2)
    assert two.eps_lower >= four.eps_lower >= 0
    assert eps_lower(tp, fp, n1, n0, 0.0, alpha).eps_lower >= four.eps_lower


def test_a_scan_gives_the_values_of_single_thresholds():
    tp, fp = np.array([900, 500, 80, 3, 0]), np.array([700, 200, 10, 0, 0])
    single = [
        eps_lower(int(a), int(b), 1000, 900, 1e-5, 0.05, Split.TWO).eps_lower for a, b in zip(tp, fp, strict=True)
    ]
    assert eps_lower_scan(tp, fp, 1000, 900, 1e-5, 0.05, Split.TWO).tolist() == single
    assert max(single) > 0


def test_log_ratio_at_its_edges():
    assert log_ratio([0.5, 1e-5, 1e-6, 0.5, 0.0], [0.1, 0.5, 0.5, 0.0, 0.0], 1e-5).tolist() == pytest.approx(
        [math.log((0.5 - 1e-5) / 0.1), 0.0, 0.0, math.inf, 0.0]
    )
    assert eps_from_bounds(0.2, 0.1, 0.9, 0.2, 0.0) == pytest.approx(math.log(4.5))


@pytest.mark.parametrize("change", [{"delta": -0.1}, {"delta": 1.0}, {"alpha": 0.0}, {"alpha": 1.0}, {"tp": 11}])
def test_eps_lower_refuses_values_out_of_range(change):
    with pytest.raises(StudyError, match="needs"):
        eps_lower(**{"tp": 5, "fp": 1, "n1": 10, "n0": 10, "delta": 1e-5, "alpha": 0.05, **change})


@given(st.floats(0.05, 6), st.floats(0, 12))
def test_gdp_delta_is_the_textbook_formula(mu, eps):
    plain = ndtr(mu / 2 - eps / mu) - math.exp(eps) * ndtr(-mu / 2 - eps / mu)
    assert gdp.delta(mu, eps) == pytest.approx(plain, rel=1e-9, abs=1e-13)


@given(st.floats(0.01, 1000), st.floats(1e-12, 0.3))
def test_gdp_eps_and_mu_invert_delta(mu, delta):
    eps = gdp.eps(mu, delta)
    if eps > 1e-6:
        assert gdp.delta(mu, eps) == pytest.approx(delta, rel=1e-6)
        assert gdp.mu(eps, delta) == pytest.approx(mu, rel=1e-6)
    else:
        assert gdp.delta(mu, 0.0) <= delta * (1 + 1e-3)


def test_gdp_at_its_edges():
    assert gdp.eps(0.0, 1e-5) == 0
    assert gdp.delta(0.0, 0.0) == 0
    assert gdp.mu(0.0, 1e-5) == pytest.approx(2 * 1.2533141e-5, rel=1e-6)
    # For huge mu the loss is Normal(mu^2/2, mu^2) and its 1 - delta quantile is eps to first order.
    assert gdp.eps(1e4, 1e-5) == pytest.approx(0.5e8 + 4.2649e4, abs=5)
    for bad in (-1.0, math.nan, math.inf):
        with pytest.raises(StudyError, match="needs"):
            gdp.eps(bad, 1e-5)
        with pytest.raises(StudyError, match="needs"):
            gdp.mu(bad, 1e-5)
    for bad in (0.0, 1.0, math.nan):
        with pytest.raises(StudyError, match="needs"):
            gdp.eps(1.0, bad)


@given(st.floats(0, 1), st.floats(1e-9, 1))
def test_last_true_finds_the_last_float(low, turn):
    found = last_true(lambda x: x <= turn, low, 2.0)
    assert found == (turn if turn >= low else low)
    assert last_true(lambda x: True, low, 2.0) == 2.0
