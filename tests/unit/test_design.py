"""From pools to probes: spread, copies, uniform draws, greedy picks, and none from a pool that is too small."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import naive_greedy

from coalmine.auditor.attacks import ATTACKS, CanaryKind, PoolKind, Selection
from coalmine.auditor.design import choose_probes, probe_positions, squared_distances
from coalmine.auditor.moments import moments
from coalmine.auditor.nonce import nonce_pool, nonce_user
from coalmine.auditor.public import public_users
from coalmine.protocol.errors import BankError
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.randomness import Purpose, stream
from coalmine.protocol.route import route
from coalmine.protocol.tally import tally

MECHANISM = Mechanism(votes_per_record=2)
K, D, R = 2, 6, 4
POSITIONS = np.array([1, 5, 6, 19])


def unit(rng, n):
    rows = rng.normal(size=(n, D))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def setting(seed=0, pool=9, records=8):
    rng = np.random.default_rng(seed)
    candidates, offsets = unit(rng, 25), np.array([0, 3, 3, 7, 12])
    auxiliary = public_users(unit(rng, 12), offsets, candidates, POSITIONS, MECHANISM, 48, 1)
    return candidates, auxiliary, unit(rng, records), unit(rng, pool)


def choose(name, seed=0, draw=0, pool=9, sources=None):
    candidates, auxiliary, canary, items = setting(seed, pool)
    rng = np.random.default_rng(draw)
    return choose_probes(
        ATTACKS[name], canary, items, sources or range(len(items)), candidates, POSITIONS, auxiliary, 50, rng
    ).tolist()


def test_copies_take_each_record_once_in_order():
    assert choose("exact") == [0, 1, 2, 3]


@given(st.integers(0, 1000))
def test_uniform_draws_repeat_nothing_and_follow_the_stream(draw):
    picks = choose("nonce", draw=draw)
    assert len(set(picks)) == R
    assert set(picks) <= set(range(9))
    assert picks == choose("nonce", draw=draw)


def test_uniform_draws_reach_every_item():
    drawn = [tuple(sorted(choose("nonce", draw=draw))) for draw in range(40)]
    assert {item for picks in drawn for item in picks} == set(range(9))
    assert len(set(drawn)) > 20


@given(st.lists(st.integers(0, 6), min_size=R, max_size=25), st.integers(0, 100))
def test_paraphrases_are_spread_evenly_over_records(sources, draw):
    picks = choose("paraphrase", draw=draw, pool=len(sources), sources=sources)
    assert len(set(picks)) == len(picks) == R
    there, taken = Counter(sources), Counter(sources[pick] for pick in picks)
    most = max(taken.values())
    for record, items in there.items():  # nobody is short of more than one turn while it still has items
        assert taken[record] >= min(items, most - 1)
    assert picks == choose("paraphrase", draw=draw, pool=len(sources), sources=sources)


def test_which_paraphrase_of_a_record_is_drawn():
    sources = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    drawn = {item for draw in range(60) for item in choose("paraphrase", draw=draw, pool=12, sources=sources)}
    assert drawn == set(range(12))


@pytest.mark.parametrize("seed", range(5))
def test_greedy_picks_equal_the_plain_form(seed):
    candidates, auxiliary, canary, pool = setting(seed)
    wide = [array.astype(float) for array in (np.delete(candidates, POSITIONS, axis=0), pool, canary)]
    plain, _ = naive_greedy.select(*wide, K, R, naive_greedy.norm_objective)
    assert choose("paraphrase-norm", seed) == plain
    everything = np.concatenate([np.delete(candidates, POSITIONS, axis=0), pool])
    votes = tally(route(auxiliary.records, everything, K), auxiliary.offsets, MECHANISM, 48)
    on_pool = votes.on(np.arange(21, 30), 30)
    np.testing.assert_array_equal(auxiliary.votes_on_pool(pool, 25), on_pool)
    covariance = moments(on_pool, 50, MECHANISM).covariance
    plain, _ = naive_greedy.select(*wide, K, R, naive_greedy.mu_objective, covariance)
    assert choose("paraphrase-mu", seed) == plain


def test_public_votes_are_those_over_the_planted_bank():
    candidates, auxiliary, _, pool = setting()
    planted = candidates.copy()
    planted[POSITIONS] = pool[:R]
    expected = tally(route(auxiliary.records, planted, K), auxiliary.offsets, MECHANISM, 48)
    found = auxiliary.votes(pool[:R], POSITIONS)
    np.testing.assert_array_equal(found.on(np.arange(25), 25), expected.on(np.arange(25), 25))


@pytest.mark.parametrize("name", [name for name, attack in ATTACKS.items() if attack.pool is not PoolKind.NONE])
def test_a_pool_smaller_than_r_is_refused(name):
    with pytest.raises(BankError, match=f"attack {name}: the pool holds 3 texts, 4 probes are needed"):
        choose(name, pool=3)


@settings(max_examples=50)
@given(st.integers(1, 200), st.integers(0, 200), st.integers(0, 100))
def test_positions_are_ascending_different_and_reproducible(size, probes, seed):
    probes = min(size, probes)
    found = probe_positions(size, probes, stream(seed, Purpose.PROBE_POSITIONS))
    assert len(found) == probes
    assert (np.diff(found) > 0).all()
    assert probes == 0 or 0 <= found[0] <= found[-1] < size
    np.testing.assert_array_equal(found, probe_positions(size, probes, stream(seed, Purpose.PROBE_POSITIONS)))


def test_positions_depend_on_the_seed():
    found = {tuple(probe_positions(100, 5, stream(seed, Purpose.PROBE_POSITIONS))) for seed in range(10)}
    assert len(found) == 10


def test_distances_are_summed_as_votes_sum_them():
    _, _, canary, pool = setting()
    nearest = route(canary, pool, len(pool))
    found = squared_distances(canary, pool)
    np.testing.assert_array_equal(np.take_along_axis(found, nearest.index.astype(int), 1), nearest.distance)
    assert squared_distances(canary[:0], pool).shape == (0, 9)


def test_nonces_are_long_different_and_independent_of_the_records():
    user, pool = nonce_user(1, 1, 64), nonce_pool(1, 1, 512)
    assert (len(set(user)), len(set(pool))) == (64, 512)
    assert not set(user) & set(pool)
    assert {len(text) for text in user + pool} == {99}
    assert user == nonce_user(1, 1, 64)
    assert not set(user) & set(nonce_user(1, 2, 64) + nonce_user(2, 1, 64))
    assert nonce_pool(1, 1, 100) == pool[:100]


def test_the_eight_attacks_are_those_of_the_method():
    real, nonce = CanaryKind.REAL, CanaryKind.NONCE
    assert {name: (attack.canary, attack.pool, attack.selection) for name, attack in ATTACKS.items()} == {
        "ordinary": (real, PoolKind.NONE, Selection.NONE),
        "exact": (real, PoolKind.COPIES, Selection.ALL),
        "paraphrase": (real, PoolKind.PARAPHRASES, Selection.SPREAD),
        "paraphrase-norm": (real, PoolKind.PARAPHRASES, Selection.NORM),
        "paraphrase-mu": (real, PoolKind.PARAPHRASES, Selection.MU),
        "nonce": (nonce, PoolKind.NONCES, Selection.UNIFORM),
        "nonce-norm": (nonce, PoolKind.NONCES, Selection.NORM),
        "nonce-mu": (nonce, PoolKind.NONCES, Selection.MU),
    }
