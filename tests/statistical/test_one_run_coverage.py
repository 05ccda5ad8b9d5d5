"""One-run bounds hold at their nominal level: on the null, and at the boundary where the truth equals what is tested.

Each count of wrong statements is compared with the 1e-8 quantile of the binomial at the nominal level. Two-sided: at
the boundary the statements are wrong often enough to show that the level is used, and what claims too much is found.
"""

import math

import numpy as np
import pytest
from scipy.stats import binom

from coalmine.auditor.one_run import Guesses, rejects_curve, steinke_p_value
from coalmine.auditor.one_run_audit import claim_curve
from coalmine.auditor.one_run_pe import canary_scores, guess
from coalmine.auditor.one_run_plan import model_scores
from coalmine.protocol.accounting import pld_epsilon
from coalmine.protocol.privacy import Mechanism

pytestmark = pytest.mark.statistical

REPETITIONS = 2000
LEVEL = 0.05
AT_MOST = binom.isf(1e-8, REPETITIONS, LEVEL)


def test_steinke_on_the_null():
    """Scores that know nothing: a positive bound at most at the level, and not much less often (the count is whole)."""
    rng = np.random.default_rng(1)
    positive = 0
    for _ in range(REPETITIONS):
        included = rng.random(200) < 0.5
        seen = guess(rng.standard_normal(200), included, 40, 40)
        positive += steinke_p_value(seen, 0.0, 0.0) < LEVEL
    assert REPETITIONS * LEVEL / 4 < positive <= AT_MOST


@pytest.mark.parametrize("eps", [0.5, 2.0])
def test_steinke_at_the_boundary(eps):
    """Randomised response with exactly this epsilon. A mechanism with more is found more often than allowed."""
    rng = np.random.default_rng(2)
    wrong = {eps: 0, eps + 0.7: 0}
    for truth in wrong:
        for _ in range(REPETITIONS):
            included = rng.random(300) < 0.5
            kept = rng.random(300) < 1 / (1 + math.exp(-truth))
            seen = guess(np.where(kept, included, ~included).astype(float), included, 100, 100)
            wrong[truth] += steinke_p_value(seen, eps, 0.0) < LEVEL
    assert REPETITIONS * LEVEL / 4 < wrong[eps] <= AT_MOST
    assert wrong[eps + 0.7] > 2 * AT_MOST


@pytest.mark.parametrize(("q", "sigma", "rounds"), [(1.0, 1.0, 1), (0.3, 0.5, 1), (0.3, 0.8, 3)])
def test_a_true_claim_survives_and_a_false_one_does_not(q, sigma, rounds):
    """Private Evolution with exactly the claimed noise, canaries at the clip: the claim's own curve and its epsilon.

    Then half the noise under the same claim.
    """
    mechanism, delta, m, say = Mechanism(q=q, sigma=sigma), 1e-5, 1000, 60
    curve, eps = claim_curve(q, sigma, rounds), pld_epsilon(q, sigma, rounds, delta)[1]
    right, total = {}, REPETITIONS
    for name, actual in (("true", mechanism), ("false", Mechanism(q=q, sigma=sigma / 2))):
        rng = np.random.default_rng(3)
        right[name] = []
        for _ in range(total):
            included = rng.random(m) < 0.5
            right[name].append(guess(model_scores(actual, rounds, 5, included, rng), included, say, 0).correct)
    by_curve = {correct: rejects_curve(Guesses(m, say, correct), curve, LEVEL) for correct in range(say + 1)}
    by_steinke = {c: steinke_p_value(Guesses(m, say, c), eps, delta) < LEVEL for c in range(say + 1)}
    assert sum(by_curve[c] for c in right["true"]) <= AT_MOST
    assert sum(by_steinke[c] for c in right["true"]) <= AT_MOST
    if q == 1:  # hidden participation hides canaries whatever the noise, so that less of it need not show
        assert sum(by_curve[c] for c in right["false"]) > 2 * AT_MOST


def test_the_curve_on_the_null():
    """No information at all under the claim of almost none: rejected at most at the level."""
    rng = np.random.default_rng(4)
    curve = claim_curve(1.0, 40.0, 1)
    rejected = {c: rejects_curve(Guesses(400, 100, c), curve, LEVEL) for c in range(101)}
    wrong = sum(
        rejected[guess(rng.standard_normal(400), rng.random(400) < 0.5, 100, 0).correct] for _ in range(REPETITIONS)
    )
    assert wrong <= AT_MOST
    assert rejected[80], "what is far from chance is rejected"


def test_the_whole_score_keeps_the_level_and_sees_the_canaries():
    """Releases with background and canaries that share probes, scored by the auditor's model, under a true claim."""
    mechanism, rng = Mechanism(q=0.5, sigma=0.6), np.random.default_rng(5)
    m, say, users = 60, 10, 40
    own = np.repeat(np.eye(m), 2, axis=1)
    canaries = own + 0.3 * np.roll(own, 2, axis=1)
    canaries *= mechanism.clip / np.linalg.norm(canaries, axis=1, keepdims=True)
    background = 0.03 * (rng.random((users, 2 * m)) < 0.02)
    eps = pld_epsilon(mechanism.q, mechanism.sigma, 1, 1e-5)[1]
    wrong, positive, right = 0, 0, 0
    for _ in range(REPETITIONS):
        included = rng.random(m) < 0.5
        here = included & (rng.random(m) < mechanism.q)
        release = canaries[here].sum(axis=0) + background[rng.random(users) < mechanism.q].sum(axis=0)
        release = release + mechanism.noise_std * rng.standard_normal(2 * m)
        seen = guess(canary_scores(release[None], canaries, background, users, mechanism), included, say, 0)
        wrong += steinke_p_value(seen, eps, 1e-5) < LEVEL
        positive += steinke_p_value(seen, 0.0, 1e-5) < LEVEL
        right += seen.correct
    assert wrong <= AT_MOST
    assert positive > 4 * AT_MOST, "the canaries are seen"
    assert right / (say * REPETITIONS) > 0.8
