"""Audits over several rounds against exact laws, plain loops and their own nominal levels.

False-failure rates: every check of a count has a two-sided exact binomial level of 1e-9 or less; miss counts are
compared with the 1e-8 quantile of the binomial at the nominal rate.
"""

from dataclasses import replace

import numpy as np
import pytest
from fakes import paths
from oracles import naive_rounds
from scipy.stats import binom

from coalmine.auditor.eps_bound import Split, Terms, eps_lower
from coalmine.auditor.rounds import monte_carlo, variance_reduced
from coalmine.auditor.rounds.calibration import calibrate
from coalmine.auditor.rounds.composition import compose, exact_epsilons
from coalmine.auditor.rounds.path import ScoredRound
from coalmine.auditor.rounds.proposal import Proposal
from coalmine.auditor.rounds.variance_reduced import METHOD
from coalmine.auditor.variance_reduced import Probabilities
from coalmine.auditor.variance_reduced import eps_lower as mean_bound
from coalmine.protocol.privacy import Mechanism

pytestmark = pytest.mark.statistical
LEVEL = 1e-9
REPETITIONS = 2000


def fits(count, n, rate, error):
    return binom.ppf(LEVEL / 2, n, max(0.0, rate - error)) <= count <= binom.isf(LEVEL / 2, n, min(1.0, rate + error))


@pytest.mark.parametrize("rounds", [2, 3])
@pytest.mark.parametrize("case", range(6))
def test_counts_agree_with_the_exact_law(case, rounds):
    rng = np.random.default_rng(case)
    mechanism = Mechanism(q=float(rng.choice([0.05, 0.3, 0.7])), sigma=float(rng.uniform(0.5, 1.5)))
    path = paths.path(case, rounds, mechanism, users=60)
    levels, n = [-0.1, 0.1, 0.6, 1.5], 100_000
    counted = monte_carlo.count(path, [levels] * rounds, n, 7, name=f"{case} {rounds}")
    for t, law in enumerate(compose(path)):
        exact = law.rates(levels)
        for place in range(len(levels)):
            assert fits(counted.tp[t][place], n, exact.tpr[place], exact.error)
            assert fits(counted.fp[t][place], n, exact.fpr[place], exact.error)
        assert not fits(counted.fp[t][1], n, exact.fpr[1] + 0.03, exact.error), "the check can fail"


@pytest.mark.parametrize("case", range(3))
def test_the_plain_loop_over_histograms_agrees_too(case):
    rng = np.random.default_rng(case)
    mechanism = Mechanism(q=0.3, sigma=0.8)
    rounds = [paths.drawn(rng, mechanism, users=6) for _ in range(3)]
    levels, n = [0.2, 0.4, 0.6], 3000
    plain = [(votes, canary, by.direction, by.offset) for votes, canary, by in rounds]
    hits = naive_rounds.counts(plain, mechanism.noise_std, mechanism.q, levels, n, rng)
    for t, law in enumerate(compose([ScoredRound.among(by, votes) for votes, _, by in rounds])):
        exact = law.rates(levels[t])
        assert fits(hits[t, 0], n, exact.tpr[0], exact.error)
        assert fits(hits[t, 1], n, exact.fpr[0], exact.error)
    assert not fits(hits[2, 1], n, exact.fpr[0] + 0.12, exact.error), "the check can fail"


PROPOSALS = {"likely": lambda each: Proposal.likely(each, 1e-3), "eligible": Proposal.eligible}


@pytest.mark.parametrize("aim", PROPOSALS)
@pytest.mark.parametrize("q", [0.1, 0.6, 1.0])
def test_weighted_values_have_the_rates_as_their_means_and_keep_their_bounds(aim, q):
    """The mean of n values strays from its expectation by 7 standard errors with probability far below 1e-9."""
    path, n = paths.path(1, 3, Mechanism(q=q, sigma=1.0), users=40), 60_000
    proposals = [PROPOSALS[aim](each) for each in path]
    laws = compose(path)
    levels = [float(law.points[np.searchsorted(np.cumsum(law.present_high), 0.98)]) for law in laws]
    for law, level, drawn in zip(laws, levels, variance_reduced.draw(path, proposals, levels, n, 3), strict=True):
        rates = law.rates(level)
        for values, (low, high), rate in (
            (drawn.present, drawn.present_range, rates.tpr[0]),
            (drawn.absent, drawn.absent_range, rates.fpr[0]),
        ):
            assert low <= values.min()
            assert values.max() <= high
            error = 7 * values.std() / np.sqrt(n)
            assert abs(values.mean() - rate) <= error + rates.error
            assert error < 0.3 * rate, "and not vacuous"


BOUNDARY = Mechanism(q=0.5, sigma=1.0)


def boundary():
    """Two rounds with a threshold, and the epsilon (at delta 0) that its true rates stand for."""
    path = paths.path(5, 2, BOUNDARY, users=5)
    first, second = ((r.projections, r.shift, r.score.noise_std, 0.5, r.score.offset) for r in path)
    threshold = 0.8
    tpr, fpr = naive_rounds.two_rounds(first, second, threshold)
    return path, threshold, np.log(tpr / fpr)


@pytest.mark.parametrize("split", list(Split))
def test_counting_bounds_are_wrong_in_at_most_the_stated_share(split):
    path, threshold, truth = boundary()
    n, alpha = 1500, 0.3
    bounds, naive = [], []
    for repetition in range(REPETITIONS):
        seen = monte_carlo.count(path, [0.0, threshold], n, 1, name=f"{repetition}", threads=1)
        tp, fp = int(seen.tp[1][0]), int(seen.fp[1][0])
        bounds.append(eps_lower(tp, fp, n, n, 0.0, alpha, split).eps_lower)
        naive.append(np.log(tp / fp))
    limit = binom.isf(1e-8, REPETITIONS, alpha)
    assert sum(bound > truth for bound in bounds) <= limit
    assert sum(value > truth for value in naive) > limit, "the test finds a bound without confidence out"
    assert np.mean(bounds) > 0.7 * truth


def test_weighted_bounds_are_wrong_in_at_most_the_stated_share():
    path, threshold, truth = boundary()
    proposals = [Proposal.likely(each, 1e-3) for each in path]
    n, alpha = 400, 0.3
    bounds, naive = [], []
    for repetition in range(REPETITIONS):
        _, drawn = variance_reduced.draw(path, proposals, [0.0, threshold], n, 1, name=f"{repetition}", threads=1)
        bounds.append(mean_bound(drawn, 0.0, alpha, Split.TWO).eps_lower)
        naive.append(np.log(drawn.present.mean() / drawn.absent.mean()))
    limit = binom.isf(1e-8, REPETITIONS, alpha)
    assert sum(bound > truth for bound in bounds) <= limit
    assert sum(value > truth for value in naive) > limit, "the test finds a bound without confidence out"
    assert np.mean(bounds) > 0.3 * truth


def test_nothing_is_shown_where_nothing_is():
    """Both hypotheses have one law and are drawn independently, the hardest case."""
    path = [replace(each, shift=0.0) for each in paths.path(6, 2, BOUNDARY, users=5)]
    proposals = [Proposal.likely(each, 1e-3) for each in path]
    levels, n = [0.0, 0.4], 400
    counts, values = [], []
    for repetition in range(2 * REPETITIONS):
        name = f"null {repetition}"
        counts.append(int(monte_carlo.count(path, levels, n, 1, name=name, threads=1).fp[1][0]))
        values.append(variance_reduced.draw(path, proposals, levels, n, 1, name=name, threads=1)[1])
    pairs = list(zip(counts[::2], counts[1::2], strict=True))
    for alpha in (0.05, 0.5):
        limit = binom.isf(1e-8, REPETITIONS, alpha)
        assert sum(eps_lower(tp, fp, n, n, 0.0, alpha, Split.TWO).eps_lower > 0 for tp, fp in pairs) <= limit
        positive = 0
        for with_canary, without in zip(values[::2], values[1::2], strict=True):
            drawn = Probabilities(
                with_canary.present,
                without.absent,
                with_canary.present_range,
                without.absent_range,
                without.beyond,
            )
            positive += mean_bound(drawn, 0.0, alpha, Split.TWO).eps_lower > 0
        assert positive <= limit
    assert sum(tp > fp for tp, fp in pairs) > binom.isf(1e-8, REPETITIONS, 0.05), "a careless bound is found out"


def test_weighting_certifies_more_than_counting_at_equal_trials():
    """A nonce canary: few others vote where it does."""
    mechanism = Mechanism(q=0.1, sigma=1.1088)
    rng = np.random.default_rng(2)
    path = [
        replace(paths.alone(mechanism, 0.0995), projections=np.append(rng.random(30) * 0.02, np.zeros(970)))
        for _ in range(4)
    ]
    n, delta, alpha = 100_000, 1e-5, 0.01
    laws = compose(path)
    thresholds = [each.value for each in calibrate(laws, n, Terms(delta, alpha))]
    plans = variance_reduced.plan(path, laws, trials=n, delta=delta, alpha=alpha, rng=rng)
    counted = monte_carlo.count(path, thresholds, n, 4)
    exact = exact_epsilons(path, delta)
    for t in range(4):
        plain = eps_lower(int(counted.tp[t][0]), int(counted.fp[t][0]), n, n, delta, alpha)
        levels = [each.threshold for each in plans]
        drawn = variance_reduced.draw(path, plans[t].proposals, levels, n, 4)[t]
        weighed = mean_bound(drawn, delta, alpha)
        assert plain.eps_lower + 0.2 < weighed.eps_lower < exact[t].lower
        assert weighed.eps_lower > 0.8 * exact[t].lower
        assert weighed.method == METHOD
