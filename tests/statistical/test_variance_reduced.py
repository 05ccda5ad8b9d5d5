"""False-failure rates: miss counts are compared with the 1e-8 quantile of the binomial at the nominal rate."""

import numpy as np
import pytest
from oracles import empirical_bernstein
from oracles.enumerated_rates import rates
from scipy.special import ndtr
from scipy.stats import binom

from coalmine.auditor import betting, clopper_pearson, monte_carlo, variance_reduced
from coalmine.auditor.eps_bound import Split, eps_lower
from coalmine.protocol.randomness import Purpose, stream

pytestmark = pytest.mark.statistical
REPETITIONS = 2000
GAMMA = 0.05
LIMIT = binom.isf(1e-8, REPETITIONS, GAMMA)

FEW = (np.array([0.7, 0.7, 1.0, -0.4]), 1.0, 1.0, 0.1)


def ordinary():
    """A background as strong as the noise."""
    rng = np.random.default_rng(5)
    s = rng.lognormal(0, 1, 300)
    s /= np.sqrt(0.09 * (s**2).sum())
    return (s, 0.6, 1.0, 0.1), 0.1 * s.sum()


LAWS = {
    "smoothed answers": lambda rng, n: ndtr(FEW[0] @ (rng.random((4, n)) < 0.1) - 2.5),
    "skewed": lambda rng, n: rng.beta(0.2, 4, n),
    "answers": lambda rng, n: (rng.random(n) < 0.03).astype(float),
    "uniform": lambda rng, n: rng.random(n),
}
MEANS = {
    "smoothed answers": rates(*FEW, 2.5)[1],
    "skewed": 0.2 / 4.2,
    "answers": 0.03,
    "uniform": 0.5,
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [40, 600])
def test_betting_bounds_miss_at_most_at_their_level(law, n):
    rng = stream(1, Purpose.MONTE_CARLO, n, law)
    below = above = careless = 0
    for _ in range(REPETITIONS):
        draws = LAWS[law](rng, n)
        below += betting.mean_lower(draws, 0, 1, GAMMA) > MEANS[law]
        above += betting.mean_upper(draws, 0, 1, GAMMA) < MEANS[law]
        careless += draws.mean() > MEANS[law]
    assert below <= LIMIT
    assert above <= LIMIT
    assert careless > LIMIT, "the test finds a bound without confidence out"


def test_epsilon_bounds_are_wrong_in_at_most_the_stated_share():
    score, threshold, alpha, n = (np.array([0.3, 0.3, 0.8, -0.4]), 3.5, 1.0, 0.5), 2.5, 0.2, 300
    tpr, fpr = rates(*score, threshold)
    truth = np.log(tpr / fpr)
    for split in Split:
        bounds = [
            variance_reduced.eps_lower(
                variance_reduced.draw(*score, threshold, n, 2, name=f"{repetition}", threads=1), 0.0, alpha, split
            ).eps_lower
            for repetition in range(REPETITIONS)
        ]
        assert sum(bound > truth for bound in bounds) <= binom.isf(1e-8, len(bounds), alpha)
        assert np.mean(bounds) > 0.8 * truth, "and not vacuous"


def cases():
    score, mean = ordinary()
    yield "ordinary", score, mean + 4.0
    yield "nonce", (np.zeros(100), 1.0, 1.0, 0.1), 3.5
    yield "nonce, some collisions", (np.repeat([0.3, 0.0], [10, 90]), 1.0, 1.0, 0.1), 3.5


@pytest.mark.parametrize(("name", "score", "threshold"), list(cases()))
def test_it_beats_clopper_pearson_at_equal_trials(name, score, threshold):
    n, delta, alpha = 200_000, 1e-5, 0.01
    drawn = variance_reduced.draw(*score, threshold, n, 4, name=name)
    bound = variance_reduced.eps_lower(drawn, delta, alpha)
    counted = monte_carlo.count(*score, threshold, n, 4, name=name)
    plain = eps_lower(int(counted.tp[0]), int(counted.fp[0]), n, n, delta, alpha)
    assert bound.eps_lower > plain.eps_lower
    assert bound.fpr_upper - drawn.absent.mean() < 0.6 * (plain.fpr_upper - counted.fp[0] / n)
    assert drawn.present.mean() - bound.tpr_lower < 0.6 * (counted.tp[0] / n - plain.tpr_lower)
    assert bound.method == variance_reduced.METHOD
    gamma = bound.gamma
    if drawn.absent_range[0] < drawn.absent_range[1]:
        assert bound.fpr_upper <= empirical_bernstein.mean_upper(drawn.absent, *drawn.absent_range, gamma)
        assert bound.tpr_lower >= empirical_bernstein.mean_lower(drawn.present, *drawn.present_range, gamma)
    else:
        assert bound.fpr_upper == pytest.approx(drawn.absent[0], rel=1e-12), (
            "without a background nothing is left to chance"
        )


def test_smoothing_is_what_helps():
    """On bare answers betting is no better than the exact binomial bound: the gain comes from integrating the noise."""
    answers = (stream(9, Purpose.MONTE_CARLO).random(100_000) < 0.002).astype(float)
    exact = float(clopper_pearson.upper(int(answers.sum()), len(answers), 0.0025))
    assert exact < betting.mean_upper(answers, 0, 1, 0.0025) < 1.15 * exact
