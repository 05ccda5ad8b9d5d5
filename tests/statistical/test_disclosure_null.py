"""Type I error of every disclosure test is at most its level; and each rejects what it should.

Counts of rejections in 2,000 null experiments are compared with the 1e-7 quantile of the binomial at the level.
"""

import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from coalmine.auditor.disclosure.assignment import Assignment, AssignmentKind
from coalmine.auditor.disclosure.feature_match import feature_match, hoeffding_test, log_p_value
from coalmine.auditor.disclosure.roc import roc
from coalmine.auditor.disclosure.two_sample import two_sample
from coalmine.auditor.disclosure.user_match import by_count, by_grid, by_mask, by_split
from coalmine.auditor.disclosure.weighted_sum import weights

pytestmark = pytest.mark.statistical

REPETITIONS, ALPHA, USERS = 2000, 0.05, 120
MOST = binom.isf(1e-7, REPETITIONS, ALPHA)
BERNOULLI, FIXED = AssignmentKind.BERNOULLI, AssignmentKind.FIXED_SIZE
KINDS = [(BERNOULLI, 0.5), (BERNOULLI, 0.3), (FIXED, 0.5), (FIXED, 0.25)]
D = np.array([0] * 80 + [1, 1, 2, 3, 5] * 8)


def assign(kind, p, rng):
    """Train, and the assignment that drew it."""
    if kind is BERNOULLI:
        train = rng.random(USERS) < p
    else:
        train = np.zeros(USERS, bool)
        train[rng.permutation(USERS)[: round(p * USERS)]] = True
    return train, Assignment(kind, p, USERS, int(train.sum()))


@pytest.mark.parametrize(("kind", "p"), KINDS)
def test_feature_match_without_learning(kind, p):
    rng = np.random.default_rng(11)
    d = weights(D)
    exact = printed = 0
    for _ in range(REPETITIONS):
        train, assignment = assign(kind, p, rng)
        seen = int(rng.permutation(D)[train].sum())
        p_value, as_printed = math.exp(log_p_value(d, seen, assignment, 0.0)), hoeffding_test(d, seen, p, ALPHA).p_value
        exact += p_value <= ALPHA
        printed += as_printed <= ALPHA
        assert p_value <= as_printed * (1 + 1e-9)
    assert exact <= MOST
    assert printed <= exact
    assert exact > REPETITIONS * ALPHA / 2, "the exact test uses most of its level"


@pytest.mark.parametrize("eps", [0.5, 1.5])
def test_feature_match_under_dp_bounds_epsilon_from_below(eps):
    """The worst case of eps-DP: holders of a match are in train at the rate q_eps."""
    rng = np.random.default_rng(12)
    d = D[D > 0]
    assignment, grouped = Assignment(BERNOULLI, 0.5, len(d), 0), weights(d)
    wrong = 0
    for _ in range(REPETITIONS):
        seen = int(d[rng.random(len(d)) < expit(eps)].sum())
        wrong += log_p_value(grouped, seen, assignment, eps) <= math.log(ALPHA)
    assert REPETITIONS * ALPHA / 2 < wrong <= MOST


@pytest.mark.parametrize("eps", [0.5, 1.5])
def test_feature_match_under_dp_for_a_fixed_size(eps):
    """Subsets are likelier by e^eps for every holder of a match in them: one exchange changes that by e^eps."""
    rng = np.random.default_rng(13)
    users, size = 40, 20
    d = np.array([0] * 20 + [1, 2] * 10)
    counts = np.arange(0, 21)
    law = binom.pmf(counts, 20, expit(eps)) * binom.pmf(size - counts, 20, 0.5)
    law /= law.sum()
    assignment = Assignment(FIXED, 0.5, users, size)
    wrong = 0
    for holders in rng.choice(counts, REPETITIONS, p=law):
        seen = int(rng.permutation(d[20:])[:holders].sum())
        wrong += log_p_value(weights(d), seen, assignment, eps) <= math.log(ALPHA)
    assert wrong <= MOST


@pytest.mark.parametrize(("kind", "p"), KINDS)
def test_user_match_without_learning(kind, p):
    rng = np.random.default_rng(14)
    rejected = dict.fromkeys(("mask", "count", "split", "grid"), 0)
    bounded = dict.fromkeys(rejected, 0)
    for _ in range(REPETITIONS):
        train, assignment = assign(kind, p, rng)
        scores = np.round(rng.normal(size=USERS), 1)
        for name, found in (
            ("mask", by_mask(scores > 0.5, train, assignment, ALPHA)),
            ("count", by_count(scores, 30, train, assignment, ALPHA, rng)),
            ("split", by_split(scores, train, assignment, ALPHA, rng)),
            ("grid", by_grid(scores, (5, 10, 20), train, assignment, ALPHA, rng)),
        ):
            if found is not None:  # the split may choose a threshold that nobody else reaches
                rejected[name] += found.p_value <= ALPHA
                bounded[name] += found.eps_lower > 0
    assert max(rejected.values()) <= MOST
    assert max(bounded.values()) <= MOST


def test_a_threshold_chosen_on_the_tested_users_would_be_found_out():
    rng = np.random.default_rng(15)
    careless = 0
    for _ in range(300):
        train, assignment = assign(BERNOULLI, 0.5, rng)
        scores = rng.normal(size=USERS)
        found = [by_count(scores, r, train, assignment, ALPHA, rng).p_value for r in range(5, 80, 5)]
        careless += min(found) <= ALPHA
    assert careless > binom.isf(1e-7, 300, ALPHA)


@pytest.mark.parametrize(("kind", "p"), [(BERNOULLI, 0.5), (FIXED, 0.25)])
@pytest.mark.parametrize("law", ["counts", "few counts", "continuous"])
def test_the_area_without_learning(kind, p, law, monkeypatch):
    monkeypatch.setattr("coalmine.auditor.disclosure.roc.RESAMPLES", 99)
    rng = np.random.default_rng(16)
    rejected = 0
    for _ in range(REPETITIONS):
        train, _ = assign(kind, p, rng)
        scores = {
            "counts": lambda: rng.poisson(0.3, USERS).astype(float),
            "few counts": lambda: (np.arange(USERS) < 6).astype(float),
            "continuous": lambda: rng.normal(size=USERS),
        }[law]()
        found = roc(scores, train, rng)
        rejected += found is not None and found.p_value <= ALPHA
    assert rejected <= MOST


@pytest.mark.parametrize(("kind", "p"), [(BERNOULLI, 0.5), (FIXED, 0.25)])
def test_two_samples_without_learning(kind, p, monkeypatch):
    monkeypatch.setattr("coalmine.auditor.disclosure.two_sample.PERMUTATIONS", 99)
    rng = np.random.default_rng(17)
    rejected = 0
    for _ in range(REPETITIONS):
        train, _ = assign(kind, p, rng)
        nearest = np.sort(rng.beta(4, 2, size=(USERS, 3)))[:, ::-1]
        found = two_sample(nearest, rng.random(USERS), train, 0.5, rng)
        rejected += found.p_value <= ALPHA
    assert REPETITIONS * ALPHA / 2 < rejected <= MOST


def test_every_test_rejects_a_leak(monkeypatch):
    """Holders of a match, and users with large scores, are in train four times of five: found in nearly every run."""
    monkeypatch.setattr("coalmine.auditor.disclosure.two_sample.PERMUTATIONS", 199)
    rng = np.random.default_rng(18)
    found = dict.fromkeys(("feature", "hoeffding", "user", "split", "area", "two"), 0)
    runs = 100
    for _ in range(runs):
        train = rng.random(400) < 0.5
        assignment = Assignment(BERNOULLI, 0.5, 400, int(train.sum()))
        leaked = rng.random(400) < np.where(train, 0.32, 0.08)
        d = leaked * rng.integers(1, 4, 400)
        scores = rng.normal(size=400) + 2.5 * leaked
        feature = feature_match(d, train, assignment, ALPHA)
        found["feature"] += feature.p_value <= 1e-3 and feature.eps_lower > 0.3
        found["hoeffding"] += feature.hoeffding.p_value <= 1e-2
        found["user"] += by_count(scores, 40, train, assignment, ALPHA, rng).p_value <= ALPHA
        found["split"] += by_split(scores, train, assignment, ALPHA, rng).p_value <= ALPHA
        found["area"] += roc(scores, train, rng).p_value <= ALPHA
        near = np.stack([scores, scores - 0.1], axis=1)
        found["two"] += two_sample(near, rng.random(400), train, 1.0, rng).p_value <= ALPHA
    assert min(found[name] for name in ("feature", "hoeffding", "user", "area", "two")) >= 90, found
    assert found["split"] >= 60, found
