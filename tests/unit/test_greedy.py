"""Incremental forward selection equals the plain one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import naive_greedy

from coalmine.auditor.greedy import select_probes
from coalmine.protocol.errors import BankError, DataError


def distances(records, candidates):
    return np.array([np.sum((record - candidates) ** 2, axis=1) for record in records])


def nearest(records, bank, k):
    return np.sort(distances(records, bank), axis=1)[:, :k]


def covariance(rng, size, density):
    votes = (rng.random((20, size)) < density) * rng.random((20, size))
    return 0.1 * votes.T @ votes + 0.01 * np.eye(size)


@st.composite
def cases(draw, lattice):
    """On a small lattice most distances tie and pool items repeat."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dimension, p, m, pool = (draw(st.integers(low, high)) for low, high in ((1, 4), (3, 12), (1, 6), (1, 9)))

    def points(n):
        return rng.integers(-1, 2, (n, dimension)).astype(float) if lattice else rng.normal(size=(n, dimension))

    k, r = draw(st.integers(1, 3)), draw(st.integers(1, pool))
    density = draw(st.sampled_from([0.0, 0.2, 0.9]))
    return points(p), points(pool), points(m), k, r, covariance(rng, pool, density)


@settings(max_examples=120)
@given(st.booleans().flatmap(lambda lattice: cases(lattice)))
def test_picks_and_objectives_equal_the_plain_form(case):
    bank, pool, canary, k, r, sigma = case
    for matrix, objective in ((None, naive_greedy.norm_objective), (sigma, naive_greedy.mu_objective)):
        found = select_probes(nearest(canary, bank, k), distances(canary, pool), r, matrix)
        picks, values = naive_greedy.select(bank, pool, canary, k, r, objective, matrix)
        assert found.picks.tolist() == picks
        np.testing.assert_allclose(found.objectives, values, rtol=1e-9, atol=1e-14)


@settings(max_examples=30)
@given(cases(True))
def test_without_background_both_objectives_choose_alike(case):
    bank, pool, canary, k, r, _ = case
    arguments = nearest(canary, bank, k), distances(canary, pool), r
    by_norm, by_mu = select_probes(*arguments), select_probes(*arguments, 0.01 * np.eye(len(pool)))
    assert by_norm.picks.tolist() == by_mu.picks.tolist()
    np.testing.assert_allclose(100 * by_norm.objectives, by_mu.objectives, rtol=1e-12)


def test_ranking_items_on_their_own_would_choose_otherwise():
    canary = np.array([[0.0], [10.0]])
    bank = np.array([[1.0], [11.0]])
    pool = np.array([[0.0], [0.1], [10.2]])
    found = select_probes(nearest(canary, bank, 1), distances(canary, pool), 2)
    assert found.picks.tolist() == [0, 2]  # item 1 alone is worth as much as item 2, but not beside item 0


def test_a_probe_that_only_ties_with_the_kth_candidate_gets_no_vote():
    found = select_probes(np.array([[1.0]]), np.array([[1.0, 2.0]]), 1)
    assert found.picks.tolist() == [0]
    assert found.objective == 0


def test_two_hundred_duplicates_are_taken_in_order():
    canary = np.array([[0.0], [1.0]])
    pool = np.zeros((200, 1))
    sigma = 0.01 * np.eye(200) + 1e-4
    for matrix in (None, sigma):
        found = select_probes(nearest(canary, np.array([[5.0]] * 3), 3), distances(canary, pool), 5, matrix)
        assert found.picks.tolist() == [0, 1, 2, 3, 4]


def test_bad_input_is_refused():
    good = np.ones((2, 1)), np.ones((2, 3)), 3
    with pytest.raises(BankError, match=r"3 items.*4 probes"):
        select_probes(*good[:2], 4)
    with pytest.raises(DataError, match="shape"):
        select_probes(np.ones((1, 1)), *good[1:])
    with pytest.raises(DataError, match="finite"):
        select_probes(np.full((2, 1), np.nan), *good[1:])
    with pytest.raises(DataError, match=r"\(2, 2\)"):
        select_probes(*good, np.eye(2))
    with pytest.raises(DataError, match="positive definite"):
        select_probes(*good, np.ones((3, 3)))
