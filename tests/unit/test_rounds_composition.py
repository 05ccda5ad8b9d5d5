"""The exact law of the summed score."""

from dataclasses import replace

import numpy as np
import pytest
from fakes import paths
from oracles.naive_rounds import two_rounds

from coalmine.auditor.exact import exact_epsilon
from coalmine.auditor.rounds.composition import compose, exact_epsilons
from coalmine.auditor.rounds.path import ScoredRound
from coalmine.protocol import accounting
from coalmine.protocol.errors import DataError, StudyError
from coalmine.protocol.privacy import Mechanism

DELTA = 1e-5
STATED = 2e-5
"""What the grid may give away, per unit of epsilon above 1."""


@pytest.mark.parametrize(("q", "sigma"), [(0.1, 1.1088), (0.01, 0.7), (0.5, 0.5), (0.02, 2.0), (1.0, 3.0)])
def test_a_canary_alone_at_the_ceiling_reproduces_the_composed_claim(q, sigma):
    mechanism = Mechanism(q=q, sigma=sigma)
    found = exact_epsilons([paths.alone(mechanism)] * 6, DELTA)
    for rounds in (2, 6):
        low, high = accounting.pld_epsilon(q, sigma, rounds, DELTA)
        value = found[rounds - 1]
        assert low <= value.lower + value.error, rounds
        assert high - STATED * max(1.0, high) <= value.lower <= high
        assert value.error < 1e-5
        assert value.rounding < 10 * STATED * max(1.0, high)


def test_a_wrong_number_of_rounds_or_too_little_noise_would_be_seen():
    mechanism = Mechanism(q=0.1, sigma=1.1088)
    found = exact_epsilons([paths.alone(mechanism)] * 2, DELTA)
    assert found[1].lower > accounting.pld_epsilon(0.1, 1.1088, 1, DELTA)[1] + 0.1
    louder = exact_epsilons([paths.alone(replace(mechanism, sigma=1.0))], DELTA)
    assert louder[0].lower > accounting.pld_epsilon(0.1, 1.1088, 1, DELTA)[1] + 0.1


@pytest.mark.parametrize("seed", range(12))
def test_one_round_agrees_with_the_single_round_audit(seed):
    rng = np.random.default_rng(seed)
    q = float(rng.choice([0.01, 0.1, 0.5, 1.0]))
    mechanism = Mechanism(q=q, sigma=float(rng.uniform(0.5, 2)))
    (each,) = paths.path(seed, 1, mechanism, users=int(rng.integers(0, 200)))
    (value,) = exact_epsilons([each], DELTA)
    single = exact_epsilon(each.projections, each.shift, each.score.noise_std, q, DELTA)
    assert single.lower - STATED * max(1.0, single.lower) <= value.lower <= single.upper
    assert value.error < 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_a_background_never_shows_more_than_the_canary_alone(seed):
    mechanism = Mechanism(q=0.2, sigma=0.8)
    found = exact_epsilons(paths.path(seed, 4, mechanism, users=100), DELTA)
    for rounds, value in enumerate(found, 1):
        assert 0 < value.lower < accounting.pld_epsilon(0.2, 0.8, rounds, DELTA)[1]


@pytest.mark.parametrize("seed", range(6))
def test_rates_of_two_rounds_agree_with_quadrature(seed):
    mechanism = Mechanism(q=0.3, sigma=0.8)
    rounds = paths.path(seed, 2, mechanism, users=6)
    law = compose(rounds)[1]
    listed = [(r.projections, r.shift, r.score.noise_std, 0.3, r.score.offset) for r in rounds]
    thresholds = [-0.3, 0.0, 0.5, 1.5, 3.0]
    found = law.rates(thresholds)
    for place, threshold in enumerate(thresholds):
        tpr, fpr = two_rounds(*listed, threshold)
        assert found.tpr[place] == pytest.approx(tpr, abs=found.error)
        assert found.fpr[place] == pytest.approx(fpr, abs=found.error)
        assert found.tpr[place] == pytest.approx(tpr, rel=1e-4)
        assert found.fpr[place] == pytest.approx(fpr, rel=1e-4)
    assert found.error < 0.01


def test_masses_are_carried_between_bounds_that_stay_close():
    for law in compose(paths.path(1, 3, Mechanism(q=0.3, sigma=0.8), users=50)):
        for low, high in ((law.absent_low, law.absent_high), (law.present_low, law.present_high)):
            assert (low >= 0).all()
            assert (low <= high).all()
            assert low.sum() <= 1 <= high.sum() <= low.sum() + 1e-9


def test_users_who_move_nothing_and_the_order_of_rounds_do_not_matter():
    mechanism = Mechanism(q=0.3, sigma=0.8)
    rounds = paths.path(2, 3, mechanism)
    value = exact_epsilons(rounds, DELTA)[2].lower
    crowded = [replace(each, projections=np.append(each.projections, np.zeros(8000))) for each in rounds]
    assert exact_epsilons(crowded, DELTA)[2].lower == value
    assert exact_epsilons(rounds[::-1], DELTA)[2].lower == pytest.approx(value, abs=1e-10)


def test_a_canary_that_never_takes_part_shows_nothing():
    rounds = [replace(each, shift=0.0) for each in paths.path(3, 3, Mechanism(q=0.3, sigma=0.8))]
    for value in exact_epsilons(rounds, DELTA):
        assert value.lower == 0
        assert value.error < 1e-7


def test_rounds_of_very_different_strength():
    strong, weak = (paths.alone(Mechanism(q=0.1, sigma=0.5), norm) for norm in (0.1, 0.001))
    one, both = exact_epsilons([strong, weak], DELTA)
    assert one.lower <= both.lower < one.lower + 0.02


def test_bad_input_is_refused():
    each = paths.alone(Mechanism())
    with pytest.raises(StudyError):
        exact_epsilons([], DELTA)
    for delta in (0.0, 1.0):
        with pytest.raises(StudyError):
            exact_epsilons([each], delta)
    with pytest.raises(StudyError):
        replace(each, shift=-1.0)
    with pytest.raises(DataError):
        ScoredRound.standing_in(each.score, np.empty((0, 1)), 10)
    with pytest.raises(StudyError):
        ScoredRound(each.score, np.array([np.nan]), 1.0)


def test_the_statistic_inverts_the_score():
    for q in (0.05, 0.9, 1.0):
        (each,) = paths.path(4, 1, Mechanism(q=q, sigma=1.0))
        values = np.linspace(-3, 40, 50)
        np.testing.assert_allclose(each.statistic(each.ell_mix(values)), values, atol=1e-9)
        if q < 1:
            assert each.statistic(np.array([each.least - 0.1]))[0] == -np.inf
