"""A canary that never takes part: a positive bound appears in at most the nominal share of experiments.

Both hypotheses then have one law. Their trials are drawn independently here, the hardest case: with the shared draws of
`monte_carlo.count` the two counts would be equal and the bound always 0. Thresholds are fixed beforehand. The number of
positive bounds is compared with the 1e-8 quantile of the binomial at the nominal rate.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from coalmine.auditor import monte_carlo, variance_reduced
from coalmine.auditor.eps_bound import Split, eps_from_bounds, eps_lower

pytestmark = pytest.mark.statistical

PROJECTIONS = np.random.default_rng(0).normal(size=30)
TAU, Q, TRIALS, REPETITIONS = 1.0, 0.2, 400, 2000
MEAN, STD = Q * PROJECTIONS.sum(), np.sqrt(TAU**2 + Q * (1 - Q) * (PROJECTIONS**2).sum())


def answers(threshold, name):
    return int(monte_carlo.count(PROJECTIONS, 0.0, TAU, Q, threshold, TRIALS, 6, name=name, threads=1).fp[0])


@pytest.mark.parametrize("z", [0.0, 1.5])
def test_counting_shows_nothing_where_nothing_is(z):
    threshold = MEAN + z * STD
    pairs = [(answers(threshold, f"with {i} {z}"), answers(threshold, f"without {i} {z}")) for i in range(REPETITIONS)]
    for alpha in (0.05, 0.5):
        limit = binom.isf(1e-8, REPETITIONS, alpha)
        for split in Split:
            assert sum(eps_lower(tp, fp, TRIALS, TRIALS, 0.0, alpha, split).eps_lower > 0 for tp, fp in pairs) <= limit
        careless = sum(float(eps_from_bounds(tp / TRIALS, fp / TRIALS, 0.0, 1.0, 0.0)) > 0 for tp, fp in pairs)
        if alpha == 0.05:
            assert careless > limit, "the test finds a bound without confidence out"


def test_variance_reduction_shows_nothing_where_nothing_is():
    threshold = MEAN + STD

    def draw(name):
        return variance_reduced.draw(PROJECTIONS, 0.0, TAU, Q, threshold, TRIALS, 6, name=name, threads=1)

    positive = {0.05: 0, 0.5: 0}
    for i in range(REPETITIONS):
        present, absent = draw(f"with {i}"), draw(f"without {i}")
        drawn = replace(absent, present=present.present, present_range=present.present_range)
        for alpha in positive:
            positive[alpha] += variance_reduced.eps_lower(drawn, 0.0, alpha, Split.TWO).eps_lower > 0
    for alpha, seen in positive.items():
        assert seen <= binom.isf(1e-8, REPETITIONS, alpha)
