"""The feature-match test against exact fractions, and what must hold for every input."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.naive_weighted import coin_tail, coupled_subset_tails, subset_tail, worst_subset_tail
from scipy.special import logit
from scipy.stats import binom

from coalmine.auditor.disclosure import fixed_size, weighted_sum
from coalmine.auditor.disclosure.assignment import Assignment, AssignmentKind, declare
from coalmine.auditor.disclosure.feature_match import (
    eps_lower,
    feature_match,
    hoeffding_test,
    inclusion_rate,
    log_p_value,
)
from coalmine.auditor.disclosure.weighted_sum import log_chernoff, log_upper_tail, weights
from coalmine.protocol.errors import DataError, StudyError

BERNOULLI, FIXED, UNKNOWN = AssignmentKind.BERNOULLI, AssignmentKind.FIXED_SIZE, AssignmentKind.UNKNOWN


def coins(n, p):
    return Assignment(BERNOULLI, p, n, 0)


def fixed(n, train):
    return Assignment(FIXED, train / n, n, train)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=25), st.integers(1, 9), st.data())
def test_the_tail_is_the_exact_one_to_its_last_value(d, tenths, data):
    threshold = data.draw(st.integers(0, sum(d) + 1))
    expected = coin_tail(d, threshold, Fraction(tenths, 10))
    found = math.exp(log_upper_tail(weights(d), threshold, float(logit(tenths / 10))))
    assert found == pytest.approx(float(expected), rel=1e-10, abs=0)


@pytest.mark.parametrize(("n", "unit", "rate"), [(400, 3, 0.5), (300, 1, 0.2), (200, 7, 0.999)])
def test_tails_far_below_rounding_keep_their_digits(n, unit, rate):
    d = weights([unit] * n)
    for k in range(1, n + 1, max(1, n // 9)):
        expected = binom.logsf(k - 1, n, rate)
        assert log_upper_tail(d, unit * k, float(logit(rate))) == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_a_tail_of_1e_minus_60_with_unequal_weights():
    d = [1, 2, 3, 5, 8] * 60
    expected = coin_tail(d, 1100, Fraction(1, 2))
    assert float(expected) < 1e-60
    found = math.exp(log_upper_tail(weights(d), 1100, 0.0))
    assert found == pytest.approx(float(expected), rel=1e-9, abs=0)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=60), st.floats(0.05, 0.95), st.floats(0.001, 0.4), st.data())
def test_exact_is_never_weaker_than_chernoff_nor_chernoff_than_hoeffding(d, p, alpha, data):
    if not any(d):
        return
    found = weights(d)
    train = data.draw(st.integers(0, sum(d)))
    printed = hoeffding_test(found, train, p, alpha)
    exact = log_p_value(found, train, coins(len(d), p), 0.0)
    chernoff = log_chernoff(found, train, float(logit(p)))
    assert math.exp(exact) <= math.exp(chernoff) * (1 + 1e-9)
    assert math.exp(chernoff) <= printed.p_value * (1 + 1e-9)
    assert eps_lower(found, train, coins(len(d), p), alpha) >= printed.eps_one_sided - 1e-9


@settings(max_examples=30)
@given(st.lists(st.integers(0, 12), min_size=2, max_size=30), st.integers(1, 29), st.floats(0.01, 0.3), st.data())
def test_the_same_for_a_fixed_size(d, train_users, alpha, data):
    if not any(d):
        return
    assignment = fixed(len(d), min(train_users, len(d) - 1))
    found, train = weights(d), data.draw(st.integers(0, sum(d)))
    exact = math.exp(log_p_value(found, train, assignment, 0.0))
    assert exact <= hoeffding_test(found, train, assignment.p, alpha).p_value * (1 + 1e-9)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=9), st.data())
def test_the_fixed_size_tail_lists_all_subsets(d, data):
    size = data.draw(st.integers(1, len(d) - 1))
    threshold = data.draw(st.integers(0, sum(d) + 1))
    found = math.exp(fixed_size.log_upper_tail_zero(weights(d), threshold, fixed(len(d), size)))
    assert found == pytest.approx(float(subset_tail(d, size, threshold)), rel=1e-10, abs=1e-15)
    worst = math.exp(fixed_size.log_upper_tail_eps(weights(d), threshold, fixed(len(d), size), 0.0))
    assert worst == pytest.approx(found, rel=1e-9, abs=1e-15)


@settings(max_examples=25)
@given(st.lists(st.integers(0, 4), min_size=2, max_size=7), st.integers(2, 5), st.data())
def test_no_mechanism_exceeds_the_fixed_size_bound(d, factor, data):
    size = data.draw(st.integers(1, len(d) - 1))
    threshold = data.draw(st.integers(1, max(1, sum(d))))
    bound = math.exp(fixed_size.log_upper_tail_eps(weights(d), threshold, fixed(len(d), size), math.log(factor)))
    assert bound >= float(worst_subset_tail(d, size, threshold, Fraction(factor))) - 1e-12
    assert bound >= float(coupled_subset_tails(d, size, threshold, Fraction(factor))) - 1e-12


@pytest.mark.parametrize("module", [weighted_sum, fixed_size])
def test_beyond_the_budget_a_valid_bound_takes_over_and_says_so(module, monkeypatch):
    rng = np.random.default_rng(4)
    d = rng.integers(0, 4, 40)
    train = np.zeros(40, bool)
    train[rng.permutation(40)[:20]] = True
    assignment = fixed(40, 20) if module is fixed_size else coins(40, 0.5)
    exact = feature_match(d, train, assignment, 0.05)
    monkeypatch.setattr(module, "EXACT_WORK", 0)
    bounded = feature_match(d, train, assignment, 0.05)
    assert (exact.method, bounded.method) == ("exact", "chernoff")
    assert exact.p_value <= bounded.p_value <= bounded.hoeffding.p_value * (1 + 1e-12)
    assert bounded.eps_lower <= exact.eps_lower


@given(st.floats(0.05, 0.95), st.floats(0, 8))
def test_q_eps_is_the_formula_of_the_proof_not_of_the_misprint(p, eps):
    assert inclusion_rate(p, eps) == pytest.approx(p / (p + (1 - p) * math.exp(-eps)))


def test_the_exact_bound_lies_where_the_p_value_meets_the_level():
    d, assignment = weights([1, 2, 3] * 50), coins(150, 0.5)
    eps = eps_lower(d, 210, assignment, 0.05)
    assert eps > 0
    assert log_p_value(d, 210, assignment, eps - 1e-6) < math.log(0.05) < log_p_value(d, 210, assignment, eps + 1e-6)
    assert eps_lower(d, 155, assignment, 0.05) == 0


def test_the_printed_bound_takes_the_larger_side_the_default_only_one():
    few = hoeffding_test(weights([1] * 200), 60, 0.5, 0.05)
    assert few.eps_one_sided == 0 < few.eps_printed


def test_the_example_of_the_paper_with_all_matches_in_distinct_users():
    assert hoeffding_test(weights([1] * 39), 37, 0.5, 0.05).p_hat == pytest.approx(0.7527, abs=5e-5)


def test_every_match_in_train_gives_a_finite_bound():
    found = feature_match([3, 1, 4, 0], [True, True, True, False], coins(4, 0.5), 0.2)
    assert found.p_value == pytest.approx(0.125)
    assert 0 < found.eps_lower < 5
    assert found.phantoms == 0


@pytest.mark.parametrize("d", [[0, 0, 0], []])
def test_without_matches_the_test_says_that_it_is_vacuous(d):
    with pytest.raises(StudyError, match="vacuous"):
        feature_match(np.array(d, int), np.zeros(len(d), bool), coins(3, 0.5), 0.05)


@pytest.mark.parametrize("d", [[-1, 2], [0.5, 1.0]])
def test_weights_must_be_counts(d):
    with pytest.raises(StudyError, match="whole number"):
        weights(d)


def test_what_is_declared_is_checked():
    train = np.arange(2000) < 1300
    with pytest.raises(DataError, match=r"1,300 of 2,000 .* default"):
        declare(BERNOULLI, None, train)
    assert declare(BERNOULLI, 0.65, train).p == 0.65
    assert declare(FIXED, None, train).p == declare(UNKNOWN, None, train).p == 0.65
    with pytest.raises(StudyError, match="no rate"):
        declare(FIXED, 0.5, train)
    with pytest.raises(DataError, match="no user"):
        declare(FIXED, None, np.ones(5, bool))
