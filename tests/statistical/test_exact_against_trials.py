"""Exact error rates against trials drawn the plain way: every user a coin, the noise a normal."""

import numpy as np
import pytest

from coalmine.auditor import clopper_pearson
from coalmine.auditor.exact import exact_epsilon, tpr_fpr

pytestmark = pytest.mark.statistical

CASES = 24
TRIALS = 20_000
LEVELS = (0.5, 0.9, 0.99)
GAMMA = 1e-6 / (CASES * len(LEVELS) * 2 * 2)  # all bounds of all cases together fail with probability below 1e-6


def case(seed):
    rng = np.random.default_rng(seed)
    projections = rng.normal(size=rng.integers(1, 120)) * rng.choice([0.05, 0.3, 3.0])
    projections[rng.random(len(projections)) < 0.3] = 0
    return (
        rng,
        projections,
        rng.choice([-1, 1]) * rng.uniform(0.1, 3),
        rng.uniform(0.3, 1.5),
        rng.choice([0.1, 0.5, 1.0]),
    )


def draws(rng, projections, s, tau, q, present):
    taking_part = rng.random((TRIALS, len(projections))) < q
    return taking_part @ projections + present * s * (rng.random(TRIALS) < q) + tau * rng.normal(size=TRIALS)


@pytest.mark.parametrize("seed", range(CASES))
def test_rates_lie_within_the_bounds_from_trials(seed):
    rng, *score = case(seed)
    for present in (0, 1):
        trials = draws(rng, *score, present)
        thresholds = np.quantile(draws(np.random.default_rng(seed + 1000), *score, present), LEVELS)
        counts = (trials[:, None] > thresholds).sum(axis=0)
        rates = tpr_fpr(*score, thresholds)
        exact = rates.tpr if present else rates.fpr
        assert (clopper_pearson.lower(counts, TRIALS, GAMMA) <= exact).all()
        assert (exact <= clopper_pearson.upper(counts, TRIALS, GAMMA)).all()


@pytest.mark.parametrize("seed", range(CASES))
def test_no_threshold_shows_more_than_the_exact_epsilon(seed):
    _, projections, s, tau, q = case(seed)
    delta = 1e-3
    epsilon = exact_epsilon(projections, s, tau, q, delta)
    spread = np.abs(projections).sum() + abs(s) + 8 * tau
    rates = tpr_fpr(projections, s, tau, q, np.linspace(-spread, spread, 4001))
    with np.errstate(divide="ignore", invalid="ignore"):
        present = np.log((rates.tpr - delta) / (rates.fpr + rates.error))
        absent = np.log((1 - rates.fpr - delta) / (1 - rates.tpr + rates.error))
        flipped = np.log((1 - rates.tpr - delta) / (1 - rates.fpr + rates.error))
    for shown in (present, absent, flipped):
        assert np.nanmax(shown) <= epsilon.upper + 1e-6
