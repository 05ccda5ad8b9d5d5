"""Guesses, the two-sample test, curves, corrections."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, mannwhitneyu

from coalmine.auditor.disclosure import power as powers
from coalmine.auditor.disclosure.assignment import Assignment, AssignmentKind
from coalmine.auditor.disclosure.fixed_size import log_count_tail, log_upper_tail_eps
from coalmine.auditor.disclosure.holm import holm
from coalmine.auditor.disclosure.roc import roc
from coalmine.auditor.disclosure.two_sample import rarest, two_sample
from coalmine.auditor.disclosure.user_match import by_count, by_grid, by_mask, by_split, eps_lower, largest, p_value
from coalmine.auditor.disclosure.weighted_sum import weights
from coalmine.auditor.one_run import Guesses, steinke_eps_lower
from coalmine.protocol.errors import StudyError

COINS = Assignment(AssignmentKind.BERNOULLI, 0.5, 1000, 500)
FIXED = Assignment(AssignmentKind.FIXED_SIZE, 0.5, 1000, 500)


def rng(seed=0):
    return np.random.default_rng(seed)


@given(st.integers(1, 400), st.data(), st.floats(0.05, 0.95), st.floats(0.001, 0.3))
def test_the_bound_inverts_the_test(r, data, p, alpha):
    w = data.draw(st.integers(0, r))
    coins = Assignment(AssignmentKind.BERNOULLI, p, r, 0)
    eps = eps_lower(r, w, coins, alpha)
    if eps == 0:
        assert p_value(r, w, coins) >= alpha * (1 - 1e-9)
    else:
        assert p_value(r, w, coins, eps) == pytest.approx(alpha, rel=1e-6)


def test_the_quantile_itself_is_not_rejected():
    coins = Assignment(AssignmentKind.BERNOULLI, 0.5, 20, 0)
    assert binom.ppf(0.95, 20, 0.5) == 14
    assert p_value(20, 14, coins) > 0.05 > p_value(20, 15, coins)
    assert eps_lower(20, 14, coins, 0.05) == 0 < eps_lower(20, 15, coins, 0.05)


def test_delta_is_known_for_fair_coins_only():
    assert eps_lower(100, 90, COINS, 0.05, 1e-5) == steinke_eps_lower(Guesses(1000, 100, 90), 1e-5, 0.05)
    for other in (FIXED, Assignment(AssignmentKind.BERNOULLI, 0.4, 1000, 400)):
        with pytest.raises(StudyError, match="delta term"):
            eps_lower(100, 90, other, 0.05, 1e-5)


@pytest.mark.parametrize("eps", [0.0, 0.7])
def test_the_short_cut_for_equal_weights_is_the_general_recursion(eps):
    assignment = Assignment(AssignmentKind.FIXED_SIZE, 0.4, 50, 20)
    for w in (0, 3, 9, 12):
        general = log_upper_tail_eps(weights([1] * 12), w, assignment, eps)
        assert log_count_tail(12, w, assignment, eps) == pytest.approx(general, rel=1e-9, abs=1e-12)


def test_a_fixed_size_is_bounded_too():
    assert 0 < eps_lower(100, 70, FIXED, 0.05) < eps_lower(100, 90, FIXED, 0.05) < 10


def test_guesses_are_the_largest_scores_and_ties_are_drawn():
    scores = np.array([1.0, np.nan, 3.0, 2.0, 2.0, 2.0])
    assert set(np.flatnonzero(largest(scores, 1, rng()))) == {2}
    drawn = {tuple(np.flatnonzero(largest(scores, 2, rng(seed)))) for seed in range(40)}
    assert drawn == {(2, 3), (2, 4), (2, 5)}
    assert not largest(scores, 9, rng())[1]


def test_rules_agree_that_there_is_nothing_to_guess():
    nothing = np.full(10, np.nan)
    train = np.arange(10) < 5
    ten = Assignment(AssignmentKind.BERNOULLI, 0.5, 10, 5)
    assert by_mask(np.zeros(10, bool), train, ten, 0.05) is None
    assert by_count(nothing, 5, train, ten, 0.05, rng()) is None
    assert by_split(nothing, train, ten, 0.05, rng()) is None
    assert by_grid(nothing, (2, 3), train, ten, 0.05, rng()) is None


@pytest.mark.parametrize("assignment", [COINS, FIXED])
def test_every_rule_finds_scores_that_tell(assignment):
    train = np.arange(1000) < 500
    scores = rng(1).normal(size=1000) + 2.0 * train
    for found in (
        by_count(scores, 50, train, assignment, 0.05, rng()),
        by_split(scores, train, assignment, 0.05, rng()),
        by_grid(scores, (10, 50, 100), train, assignment, 0.05, rng()),
    ):
        assert found is not None
        assert found.p_value < 1e-6
        assert found.eps_lower > 1


def test_the_grid_pays_for_its_size():
    train = np.arange(1000) < 500
    scores = rng(1).normal(size=1000) + 0.5 * train
    alone = by_count(scores, 100, train, COINS, 0.05, rng())
    tried = by_grid(scores, (100, 100, 5000), train, COINS, 0.05, rng())
    two = by_grid(scores, (100, 101), train, COINS, 0.05, rng())
    assert (tried.p_value, tried.tries) == (alone.p_value, 1)
    assert two.tries == 2
    assert two.p_value >= 2 * min(alone.p_value, by_count(scores, 101, train, COINS, 0.05, rng()).p_value) * (1 - 1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_the_step_down_procedure(p_values):
    corrected = holm(p_values)
    for level in (0.01, 0.05, 0.3):
        rejected = set()
        for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
            if p_values[index] * (len(p_values) - rank) > level:
                break
            rejected.add(index)
        assert {i for i, p in enumerate(corrected) if p <= level} == rejected
    assert all(raw <= one <= 1 for raw, one in zip(p_values, corrected, strict=True))


def test_the_area_is_mann_whitney_s():
    scores, train = rng(2).normal(size=300), rng(3).random(300) < 0.5
    found = roc(scores, train, rng())
    reference = mannwhitneyu(scores[train], scores[~train], alternative="greater")
    assert found.auc == pytest.approx(reference.statistic / (train.sum() * (~train).sum()))
    assert found.p_value == pytest.approx(reference.pvalue)
    assert found.method == "normal"
    assert (found.fpr[0], found.tpr[0], found.fpr[-1], found.tpr[-1]) == (0, 0, 1, 1)
    assert np.trapezoid(found.tpr, found.fpr) == pytest.approx(found.auc, abs=0.01)


def test_a_curve_from_few_counts_is_not_judged_by_a_normal_law():
    scores = np.zeros(1000)
    scores[:3] = 1
    found = roc(scores, np.arange(1000) < 500, rng())
    assert found.method == "permutation"
    assert found.p_value == pytest.approx(0.125, abs=0.02), "three of three in train happen once in eight"
    assert roc(np.zeros(10), np.arange(10) < 5, rng()) is None
    assert roc(np.ones(10), np.ones(10, bool), rng()) is None


def test_the_two_sample_statistic_is_the_energy_distance():
    values, train = rng(5).normal(size=(30, 3)), np.arange(30) < 12
    found = two_sample(values, np.zeros(30), train, 1.0, rng())

    def mean(a, b):
        return np.mean([math.dist(x, y) for x in a for y in b])

    a, b = values[train], values[~train]
    assert found.distance == pytest.approx(2 * mean(a, b) - mean(a, a) - mean(b, b))
    assert found.closer == pytest.approx(a.mean() - b.mean())


def test_rarity_chooses_who_is_compared():
    rarity = np.array([0.3, np.nan, 0.1, 0.2, 0.4])
    assert list(rarest(rarity, 0.5)) == [2, 3]
    assert list(rarest(rarity, 0.01)) == [2]
    assert list(rarest(np.full(3, np.nan), 0.5)) == []
    train = np.array([True, False, True, False, True])
    assert two_sample(rng().normal(size=(5, 2)), rarity, train, 0.5, rng()) is None
    assert two_sample(np.ones((5, 2)), np.zeros(5), train, 1.0, rng()) is None


def test_power_knows_when_it_has_too_little():
    def seen(holders, p=0.5):
        d = weights([1] * holders)
        return powers.power(d, p, 0.9, 10 * holders, 0.05)

    assert seen(4).detectable is None
    assert not seen(4).enough
    assert seen(4).users_needed > 40
    assert seen(400).enough
    assert seen(400).detectable < seen(40).detectable <= 0.5
    assert seen(400).excess_upper == pytest.approx(0.8)


def test_the_detectable_excess_is_found_that_often():
    found = powers.power(weights([1] * 60), 0.5, 0.9, 600, 0.05)
    critical = next(c for c in range(61) if binom.sf(c - 1, 60, 0.5) <= 0.05)
    assert binom.sf(critical - 1, 60, 0.5 + 0.5 * found.detectable) == pytest.approx(0.8, abs=1e-4)


def test_the_users_needed_are_about_enough():
    d = weights([1, 2] * 6)
    few = powers.power(d, 0.5, 0.9, 1000, 0.05)
    assert few.users_needed
    factor = few.users_needed / 1000
    more = weights([1] * round(6 * factor) + [2] * round(6 * factor))
    assert powers.power(more, 0.5, 0.9, few.users_needed, 0.05).detectable == pytest.approx(0.5, abs=0.12)
    assert powers.power_without_matches(0.5, 900, 0.05).users_needed == 1500
