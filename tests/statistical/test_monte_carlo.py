"""False-failure rates: every check of a count has a two-sided exact binomial level of 1e-9 or less."""

import numpy as np
import pytest
from oracles.enumerated_rates import rates
from oracles.naive_monte_carlo import counts as naive_counts
from scipy.stats import binom

from coalmine.auditor import monte_carlo
from coalmine.auditor.cohorts import background_sums
from coalmine.auditor.eps_bound import Split, eps_lower
from coalmine.protocol.randomness import Purpose, stream

pytestmark = pytest.mark.statistical
LEVEL = 1e-9


def fits(count, n, p, level=LEVEL):
    return (binom.ppf(level / 2, n, p) <= count) & (count <= binom.isf(level / 2, n, p))


@pytest.mark.parametrize("case", range(24))
def test_counts_agree_with_every_cohort_listed(case):
    rng = np.random.default_rng(case)
    q = float(rng.choice([0.02, 0.1, 0.3, 0.5, 0.8, 1.0]))
    projections = rng.normal(size=rng.integers(0, 11)) * rng.choice([0.1, 1.0, 5.0])
    s_canary, tau = float(rng.normal(1, 1)), float(rng.uniform(0.2, 2))
    threshold = float(q * projections.sum() + rng.uniform(-1, 3) * tau)
    tpr, fpr = rates(projections, s_canary, tau, q, threshold)
    n = 50_000
    counted = monte_carlo.count(projections, s_canary, tau, q, threshold, n, seed=11, name=f"case {case}")
    assert fits(counted.tp[0], n, tpr)
    assert fits(counted.fp[0], n, fpr)
    assert not fits(counted.fp[0], n, fpr + 0.05 if fpr < 0.5 else fpr - 0.05), "the check can fail"


@pytest.mark.parametrize("case", range(3))
def test_the_plain_loop_over_histograms_agrees_too(case):
    rng = np.random.default_rng(case)
    votes, canary, weights = rng.random((7, 5)), rng.random(5), rng.normal(size=5)
    q, noise_std, threshold = 0.3, 0.5, 1.0
    tpr, fpr = rates(votes @ weights, float(weights @ canary), noise_std * np.linalg.norm(weights), q, threshold)
    tp, fp = naive_counts(votes, canary, weights, noise_std, q, threshold, 3000, rng)
    assert fits(tp, 3000, tpr)
    assert fits(fp, 3000, fpr)


@pytest.mark.parametrize("q", [0.01, 0.1, 0.4, 0.5, 0.9])
def test_every_cohort_is_as_likely_as_it_should_be(q):
    users, n = 9, 400_000
    sums = background_sums(stream(3, Purpose.MONTE_CARLO, 0, str(q)), 2.0 ** np.arange(users), q, n)
    sizes = np.array([cohort.bit_count() for cohort in range(2**users)])
    seen = np.bincount(np.rint(sums).astype(int), minlength=2**users)
    assert fits(seen, n, q**sizes * (1 - q) ** (users - sizes), level=1e-10).all()
    takes_part = np.rint(sums).astype(int)[:, None] >> np.arange(users) & 1
    assert fits(takes_part.sum(axis=0), n, q).all()
    assert not fits(takes_part.sum(axis=0), n, q + 0.01).any(), "the check can fail"


def test_far_apart_participants_are_independent():
    """2000 users at q = 0.001: gaps beyond the table's reach."""
    n, half, q = 200_000, 1000, 0.001
    sums = background_sums(stream(3, Purpose.MONTE_CARLO), np.repeat([1.0, 1000.0], half), q, n).astype(int)
    first, second = sums % 1000, sums // 1000
    law = binom.pmf(np.arange(5), half, q)
    for a in range(5):
        for b in range(5):
            assert fits(((first == a) & (second == b)).sum(), n, law[a] * law[b])


@pytest.mark.parametrize("split", list(Split))
def test_the_bound_is_wrong_in_at_most_the_stated_share(split):
    projections, s_canary, tau, q, threshold = np.array([0.5, -0.2, 1.0, 0.3]), 2.0, 0.8, 0.5, 2.0
    tpr, fpr = rates(projections, s_canary, tau, q, threshold)
    truth = max(np.log(tpr / fpr), np.log((1 - fpr) / (1 - tpr)))
    n, repetitions, alpha = 1500, 2000, 0.3
    bounds, naive = [], []
    for repetition in range(repetitions):
        seen = monte_carlo.count(
            projections, s_canary, tau, q, threshold, n, 1, name=f"coverage {repetition}", threads=1
        )
        tp, fp = int(seen.tp[0]), int(seen.fp[0])
        bounds.append(eps_lower(tp, fp, n, n, 0.0, alpha, split).eps_lower)
        naive.append(np.log(tp / fp))
    limit = binom.isf(LEVEL, repetitions, alpha)
    assert sum(bound > truth for bound in bounds) <= limit
    assert sum(value > truth for value in naive) > limit, "the test finds a bound without confidence out"
    assert np.mean(bounds) > 0.8 * truth
