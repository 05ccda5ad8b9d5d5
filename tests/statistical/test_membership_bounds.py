"""Coverage of the conventions: formal ones are wrong at most at their level, uncorrected ones are not formal."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from coalmine.auditor import gdp
from coalmine.auditor.membership import conventions, scores
from coalmine.auditor.membership.onion import onion
from coalmine.auditor.membership.single_run import audit_single_run, guess, smallest_rejected_noise
from coalmine.auditor.membership.white_box import log_likelihood_ratio, measured_noise, white_box
from coalmine.auditor.one_run import steinke_eps_lower
from coalmine.protocol.dpsgd.claims import claim
from coalmine.protocol.dpsgd.mechanism import DpSgd
from coalmine.protocol.privacy import Assurance

pytestmark = pytest.mark.statistical

REPETITIONS, MODELS, ALPHA, SAFE = 2000, 60, 0.05, 1e-8
MOST = binom.isf(SAFE, REPETITIONS, ALPHA)


def wrong(draw, truth, delta):
    """How often each convention lies above the true epsilon."""
    rng, counts = np.random.default_rng(1), {}
    for _ in range(REPETITIONS):
        for one in conventions.all_conventions(*draw(rng), delta, ALPHA, rng):
            counts[one.method] = counts.get(one.method, 0) + (one.eps_lower > truth)
    return counts


def continuous_null(rng):
    return rng.random(MODELS), rng.random(MODELS)


def tied_null(rng):
    return rng.integers(0, 4, MODELS), rng.integers(0, 4, MODELS)


def gaussian_pair(rng):
    return rng.normal(1, 1, MODELS), rng.normal(0, 1, MODELS)


@pytest.mark.parametrize(
    ("draw", "truth", "delta"),
    [(continuous_null, 0.0, 1e-5), (tied_null, 0.0, 1e-5), (gaussian_pair, gdp.eps(1.0, 0.05), 0.05)],
    ids=["null", "null with ties", "gaussian"],
)
def test_formal_conventions_hold_at_their_level(draw, truth, delta):
    counts = wrong(draw, truth, delta)
    assert counts["clopper_pearson_holdout"] <= MOST
    assert counts["clopper_pearson_bonferroni"] <= MOST


def test_the_uncorrected_convention_does_not_hold_and_is_called_heuristic():
    assert wrong(continuous_null, 0.0, 1e-5)["multiple_hypothesis"] > 10 * MOST


def test_randomised_response_is_found_and_not_overstated():
    """Right with probability e/(1+e): exactly (1, 0)-DP. Rates without a correction exceed it far too often."""
    rng, n, p = np.random.default_rng(2), 400, math.e / (1 + math.e)
    values = np.array(
        [
            [
                one.eps_lower
                for one in conventions.all_conventions(rng.random(n) < p, rng.random(n) > p, 1e-9, ALPHA, rng)
            ]
            for _ in range(400)
        ]
    )
    most = binom.isf(SAFE, 400, ALPHA)
    assert (values[:, :2] > 1).sum(axis=0).max() <= most
    assert (values[:, 0].mean(), values[:, 1].mean()) > (0.5, 0.2)
    assert (values[:, 2] > 1).mean() > 0.3  # raw rates overshoot about half the time


def test_null_means_of_heuristics_are_far_from_zero():
    means = conventions.null_means(200, 60, 1e-5, ALPHA, np.random.default_rng(3))
    assert 0.7 < means["multiple_hypothesis"] < 1.5
    assert means["clopper_pearson_holdout"] < 0.05
    assert means["clopper_pearson_bonferroni"] == 0


def test_lira_on_held_out_models_is_formal():
    rng, false = np.random.default_rng(4), 0
    for _ in range(600):
        present, absent = rng.random((2, 40))
        ratio = [scores.likelihood_ratio(side, present[:20], absent[:20]) for side in (present, absent)]
        held = conventions.clopper_pearson_holdout(
            (ratio[0][:20], ratio[1][:20]), (ratio[0][20:], ratio[1][20:]), 1e-5, ALPHA
        )
        false += held.eps_lower > 0
    assert false <= binom.isf(SAFE, 600, ALPHA)


def test_the_onion_is_formal_in_its_holdout_alone():
    rng, false, loud = np.random.default_rng(5), 0, 0
    for _ in range(150):
        found = onion(rng.random((40, 20)), rng.random((40, 20)), 1e-5, ALPHA, rng)
        false += found.holdout.eps_lower > 0
        loud += found.strongest.eps_lower > 0
    assert false <= binom.isf(SAFE, 150, ALPHA) < loud


CLAIM = claim(DpSgd(q=0.1, sigma=1.13, clip=1.0, delta=1e-5, declared_size=100), 100)
SHORT = claim(DpSgd(q=0.3, sigma=2.0, clip=1.0, delta=1e-5, declared_size=100), 10)


def test_one_run_readings_of_silence():
    """Each formal reading errs with probability 0.05 at most; heuristics may say anything."""
    rng, m = np.random.default_rng(6), 400
    steinke = 0
    for _ in range(300):
        seen = guess(rng.random(m), rng.random(m) < 0.5, 60, 60)
        steinke += steinke_eps_lower(seen, 1e-5, 0.05) > 0
    assert steinke <= binom.isf(SAFE, 300, 0.05)
    found = audit_single_run(SHORT, rng.random(m), rng.random(m) < 0.5, 60, 60, 1e-8)
    assert [one.assurance for one in found] == [Assurance.FORMAL] * 2 + [Assurance.HEURISTIC] * 2
    assert [one.eps_lower for one in found[:2]] == [0, 0]


def test_one_run_readings_of_a_leak_beyond_the_claim():
    rng, m = np.random.default_rng(7), 400
    coins = rng.random(m) < 0.5
    loud = audit_single_run(SHORT, 6 * coins + rng.standard_normal(m), coins, 60, 60, 0.001)
    assert loud[0].eps_lower > 1
    assert loud[1].details["claim_rejected"]
    assert loud[1].eps_lower >= SHORT.eps_pld_lower
    assert loud[2].eps_lower > loud[0].eps_lower
    assert gdp.eps(6.0, 1e-5) * 0.7 < loud[3].eps_lower < gdp.eps(6.0, 1e-5) * 1.4


def test_the_family_of_a_claim_is_rejected_from_its_true_noise_on():
    """Two ways round: a leak beyond the claim rejects the claim's own curve, silence rejects nothing near it."""
    m, quiet = 3000, claim(DpSgd(q=0.1, sigma=8.0, clip=1.0, delta=1e-5, declared_size=100), 10)
    coins = np.random.default_rng(7).random(m) < 0.5
    loud = guess(4 * coins + np.random.default_rng(8).standard_normal(m), coins, 300, 300)
    assert smallest_rejected_noise(loud, quiet, 0.05) < quiet.sigma
    silent = guess(np.random.default_rng(9).standard_normal(m), coins, 300, 300)
    assert smallest_rejected_noise(silent, quiet, 0.001) is None


def observations(rng, models, sigma, q=0.1, steps=100):
    absent = sigma * rng.standard_normal((models, steps))
    return sigma * rng.standard_normal((models, steps)) + (rng.random((models, steps)) < q), absent


def test_the_white_box_reads_the_claims_epsilon_and_sees_missing_noise():
    rng = np.random.default_rng(9)
    right, *trials = white_box(CLAIM, 1.0, *observations(np.random.default_rng(10), 500, 1.13), 1e-6, rng)
    assert right.assurance is Assurance.EXACT
    assert 0.95 * CLAIM.eps_pld_upper <= right.eps_lower <= CLAIM.eps_pld_upper
    assert right.details["noise_fits"] > SAFE
    assert right.details["q_measured"] == pytest.approx(0.1, abs=0.03)
    assert [one.assurance for one in trials] == [Assurance.FORMAL, Assurance.FORMAL, Assurance.HEURISTIC]
    assert 0 < trials[1].eps_lower <= CLAIM.eps_pld_upper
    less = white_box(CLAIM, 1.0, *observations(np.random.default_rng(11), 500, 1.13 * 2 / 3), 1e-6, rng)[0]
    assert less.eps_lower > CLAIM.eps_pld_upper
    more = white_box(CLAIM, 1.0, *observations(np.random.default_rng(12), 500, 1.13 * 3 / 2), 1e-6, rng)[0]
    assert more.eps_lower < 0.8 * CLAIM.eps_pld_upper
    shorter = white_box(CLAIM, 1.5, *observations(np.random.default_rng(12), 500, 1.13 * 3 / 2), 1e-6, rng)[0]
    assert shorter.details["sigma_measured"] == pytest.approx(1.13, rel=0.02)


def test_noise_that_is_not_gaussian_is_seen():
    rng = np.random.default_rng(13)
    assert measured_noise(rng.laplace(size=(100, 100)), 0.05).fits < 1e-12
    assert measured_noise(rng.standard_normal((100, 100)), 0.05).fits > SAFE


def test_the_likelihood_ratio_is_the_attackers_best_score():
    present, absent = observations(np.random.default_rng(14), 4000, 1.13)
    ratio = [log_likelihood_ratio(side, 0.1, 1.13) for side in (present, absent)]
    plain = [side.sum(axis=1) for side in (present, absent)]

    def area(pair):
        return (pair[0][:, None] > pair[1][None, :2000]).mean()

    assert area(ratio) > area(plain) > 0.6
    assert np.mean(np.exp(np.minimum(ratio[1], 50))) == pytest.approx(1, abs=0.4)  # E0[dP1/dP0] = 1
