"""The exact audit: its bounds enclose the truth, and the truth behaves as it must."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.naive_exact import Law, binomial, enumerated

from coalmine.auditor.background import Background, series
from coalmine.auditor.exact import exact_epsilon, tpr_fpr
from coalmine.auditor.ideal import ideal_epsilon
from coalmine.protocol.errors import DataError, StudyError

DELTA = 1e-5
PROJECTIONS = st.lists(st.floats(-3, 3), max_size=6).map(np.array).map(lambda x: x.astype(float))
RATES = st.sampled_from([0.05, 0.1, 0.5, 0.9])


def random_case(seed):
    rng = np.random.default_rng(seed)
    projections = rng.normal(size=rng.integers(0, 9)) * rng.choice([0.1, 1.0, 4.0])
    if rng.random() < 0.3:
        projections = np.round(projections)
    return (
        projections,
        rng.choice([-1, 1]) * rng.choice([0.2, 1.0, 2.5]),
        rng.uniform(0.4, 1.5),
        rng.choice([0.05, 0.3, 0.8]),
    )


@pytest.mark.parametrize("seed", range(40))
def test_bounds_enclose_the_epsilon_of_an_enumerated_law(seed):
    projections, s, tau, q = random_case(seed)
    delta = 10.0 ** -np.random.default_rng(seed).integers(2, 7)
    truth = Law(*enumerated(projections, q), tau, s, q).epsilon(delta)
    found = exact_epsilon(projections, s, tau, q, delta)
    assert found.lower - 1e-9 <= truth <= found.upper + 1e-9
    assert found.error <= 1e-7


@pytest.mark.parametrize(("users", "step"), [(1000, 0.05), (1000, -0.3), (50, 3.0), (300, 1.5)])
def test_bounds_enclose_the_epsilon_of_many_equal_users(users, step):
    truth = Law(*binomial(step, users, 0.1), 1.0, 1.0, 0.1).epsilon(DELTA, points=40001)
    found = exact_epsilon(np.full(users, step), 1.0, 1.0, 0.1, DELTA)
    assert found.lower - 1e-8 <= truth <= found.upper + 1e-8
    assert found.error <= 1e-7


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("q", [0.05, 0.5, 0.99])
def test_the_transform_alone_finds_the_subsampled_gaussian(mu, q):
    negligible = np.array([1e-12])  # one user, so that the closed form is not used
    found = exact_epsilon(negligible, mu, 1.0, q, DELTA)
    ideal = ideal_epsilon(mu, q, DELTA)
    assert found.lower <= ideal + 1e-10
    assert found.upper >= ideal - 1e-10
    assert found.error <= 2e-7


@pytest.mark.parametrize("mu", [4.0, 12.0, 20.0])
def test_huge_epsilons_are_resolved_by_tilting(mu):
    found = exact_epsilon(np.array([1e-12, -1e-12]), mu, 1.0, 0.1, DELTA)
    assert found.lower <= ideal_epsilon(mu, 0.1, DELTA) <= found.upper + 1e-9
    assert found.error <= 1e-6


def test_what_cannot_be_resolved_is_left_open():
    found = exact_epsilon(np.array([300.0]), 300.0, 1.0, 0.1, DELTA)
    assert 10 < found.lower < found.upper == pytest.approx(ideal_epsilon(300.0, 0.1, DELTA))


@pytest.mark.parametrize("tilt", [-2.0, 0.0, 0.7, 3.0])
@pytest.mark.parametrize("seed", range(5))
def test_masses_are_within_their_certified_errors(tilt, seed):
    projections, _, tau, q = random_case(seed)
    background = Background.of(projections, tau, q)
    low = min(background.edge(t, -1) for t in (0.0, tilt))
    high = max(background.edge(t, 1) for t in (0.0, tilt))
    ends = np.linspace(low, high, 401)
    tilted = series(background, tilt, low, high)
    masses, errors = tilted.masses(ends[:-1:4], (high - low) / 100, 4)
    truth, _ = Law(*enumerated(projections / tau, q), 1.0, 0.0, q).masses(ends[:-1], ends[1:])
    assert (np.abs(masses - truth) <= errors + 1e-15 * truth.clip(1e-3)).all()
    near = np.abs(ends[:-1] - tilted.mean) < 3 * background.std(tilt)
    assert np.median((errors / truth)[near]) < 1e-11  # a tilt resolves its own neighbourhood to relative precision


@settings(max_examples=40)
@given(PROJECTIONS, st.floats(0.05, 3), RATES)
def test_others_only_blur_and_order_sign_and_scale_do_not_matter(projections, s, q):
    found = exact_epsilon(projections, s, 1.0, q, DELTA)
    assert 0 <= found.lower <= found.upper <= ideal_epsilon(s, q, DELTA) + 1e-9
    fewer = exact_epsilon(projections[:-1], s, 1.0, q, DELTA)
    assert found.lower <= fewer.upper + 1e-9
    for same in (
        exact_epsilon(-projections[::-1], -s, 1.0, q, DELTA),
        exact_epsilon(7 * projections, 7 * s, 7.0, q, DELTA),
        exact_epsilon(np.append(projections, np.zeros(3)), s, 1.0, q, DELTA),
    ):
        assert same.lower <= found.upper + 1e-9
        assert found.lower <= same.upper + 1e-9


@settings(max_examples=25)
@given(PROJECTIONS, st.floats(0.05, 3), RATES, st.floats(1.05, 3))
def test_more_noise_and_more_delta_mean_less_epsilon(projections, s, q, factor):
    found = exact_epsilon(projections, s, 1.0, q, DELTA)
    assert exact_epsilon(projections, s, factor, q, DELTA).lower <= found.upper
    assert exact_epsilon(projections, s, 1.0, q, factor * DELTA).lower <= found.upper


def test_a_looser_tolerance_gives_a_wider_valid_interval():
    projections = np.random.default_rng(0).normal(size=200) * 0.1
    loose, tight = (exact_epsilon(projections, 1.0, 1.0, 0.1, DELTA, tolerance=t) for t in (1e-2, 1e-8))
    assert loose.lower <= tight.lower <= tight.upper <= loose.upper
    assert tight.error <= 1e-8 < loose.error <= 1e-2


@pytest.mark.parametrize("seed", range(10))
def test_rates_equal_those_of_the_enumerated_law(seed):
    projections, s, tau, q = random_case(seed)
    thresholds = np.array([-np.inf, -30.0, -1.0, 0.0, 0.4, 2.0, 30.0, np.inf])
    rates = tpr_fpr(projections, s, tau, q, thresholds)
    fpr, tpr = Law(*enumerated(projections, q), tau, s, q).above(thresholds)
    assert rates.error < 1e-12
    np.testing.assert_allclose(rates.fpr, fpr, rtol=0, atol=rates.error + 1e-15)
    np.testing.assert_allclose(rates.tpr, tpr, rtol=0, atol=rates.error + 1e-15)


def test_when_everybody_takes_part_the_others_are_a_constant():
    others = np.random.default_rng(1).normal(size=400) * 10
    found = exact_epsilon(others, 1.0, 1.0, 1.0, DELTA)
    assert found.lower == pytest.approx(ideal_epsilon(1.0, 1.0, DELTA), abs=1e-9)
    rates = tpr_fpr(others, 1.0, 1.0, 1.0, others.sum())
    assert rates.fpr[0] == pytest.approx(0.5, abs=1e-10)


def test_a_canary_that_does_not_show_has_epsilon_zero():
    assert exact_epsilon(np.ones(5), 0.0, 0.0, 0.1, DELTA).upper == 0
    assert exact_epsilon(np.ones(5), 1e-9, 1.0, 0.1, DELTA).upper == 0


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"q": 0.0}, StudyError),
        ({"q": 1.1}, StudyError),
        ({"delta": 0.0}, StudyError),
        ({"tolerance": 0.0}, StudyError),
        ({"tau": 0.0}, DataError),
        ({"tau": math.nan}, DataError),
        ({"s_canary": math.nan}, DataError),
        ({"projections": np.array([np.nan])}, DataError),
        ({"projections": np.full(1000, 1e4)}, DataError),
    ],
)
def test_bad_input_is_refused(change, error):
    arguments = {"projections": np.ones(3), "s_canary": 1.0, "tau": 1.0, "q": 0.1, "delta": DELTA} | change
    with pytest.raises(error):
        exact_epsilon(**arguments)


@pytest.mark.parametrize("key", ["mu", "q", "delta"])
def test_the_ideal_refuses_values_out_of_range(key):
    with pytest.raises(StudyError, match=key):
        ideal_epsilon(**({"mu": 1.0, "q": 0.1, "delta": DELTA} | {key: -0.5}))


def test_the_ideal_of_everything_is_continuous_where_nothing_shows():
    assert ideal_epsilon(0.0, 0.1, DELTA) == 0
    assert ideal_epsilon(1e-5, 0.1, DELTA) == 0
    assert ideal_epsilon(40.0, 0.1, DELTA) == pytest.approx(945.502, abs=1e-3)
