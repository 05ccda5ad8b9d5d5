"""The plain definition of a vote, and the fast kernels that must equal it bit for bit."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import naive_vote

from coalmine.protocol.errors import BankError, DataError, ModelError
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.route import Routes, reroute, route, route_retained
from coalmine.protocol.tally import add_votes, tally
from coalmine.protocol.vote import grid_bits, nearest_candidates, vote

KINDS = ("random", "duplicates", "near", "lattice", "copies")
EDGES = settings(max_examples=60)
SPEED = {"block": st.sampled_from([None, 1, 3, 64]), "threads": st.integers(1, 3)}


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def embedded(seed, n, p, d, kind, dtype):
    """Records and candidates, with the ties of ``kind``."""
    rng = np.random.default_rng(seed)
    records, candidates = unit(rng.normal(size=(n, d))), unit(rng.normal(size=(p, d)))
    match kind:
        case "duplicates":
            candidates = candidates[rng.integers(0, 1 + p // 4, p)]
        case "near":
            candidates = candidates[rng.integers(0, 1 + p // 4, p)] + 1e-7 * rng.normal(size=(p, d))
        case "lattice":
            records, candidates = (np.sign(x) / np.sqrt(d) for x in (records, candidates))
        case "copies" if n:
            candidates[rng.permutation(p)[: min(n, p)]] = records[: min(n, p)]
    return records.astype(dtype), candidates.astype(dtype)


@st.composite
def crowds(draw, most=70):
    k = draw(st.integers(1, 6))
    p = draw(st.integers(k, most))
    shape = draw(st.integers(0, 12)), p, draw(st.sampled_from([1, 2, 5, 48]))
    arrays = embedded(draw(st.integers(0, 10**6)), *shape, draw(st.sampled_from(KINDS)), draw(st.sampled_from("fd")))
    return *arrays, k


def plainly(records, candidates, k):
    return np.array([nearest_candidates(record, candidates, k) for record in records]).reshape(len(records), k)


@EDGES
@given(crowds(), SPEED["block"], SPEED["threads"])
def test_routes_equal_the_plain_definition(crowd, block, threads):
    records, candidates, k = crowd
    found = route(records, candidates, k, block=block, threads=threads)
    np.testing.assert_array_equal(found.index, plainly(records, candidates, k))
    wide = records.astype(float)[:, None] - candidates.astype(float)[found.index]
    np.testing.assert_allclose(found.distance, (wide**2).sum(axis=2), rtol=1e-12, atol=1e-14)


@EDGES
@given(crowds(), st.randoms(use_true_random=False), SPEED["block"], SPEED["threads"])
def test_merged_routes_equal_full_routes(crowd, random, block, threads):
    records, candidates, k = crowd
    count = random.randint(0, len(candidates) - k)
    positions = np.array(sorted(random.sample(range(len(candidates)), count)), np.int64)
    before = candidates.copy()
    before[positions] = candidates[::-1][positions]  # what stood there must not matter
    retained = route_retained(records, before, k, positions, threads=threads)
    assert not np.isin(retained.index, positions).any()
    merged = reroute(retained, records, candidates[positions], positions, block=block, threads=threads)
    full = route(records, candidates, k)
    np.testing.assert_array_equal(merged.index, full.index)
    np.testing.assert_array_equal(merged.distance, full.distance)


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("kind", KINDS)
def test_routes_of_a_real_dimension_are_the_plain_ones(kind, dtype):
    records, candidates = embedded(3, 12, 2600, 384, kind, dtype)
    found = [route(records, candidates, 5, block=block, threads=threads) for block, threads in ((None, 1), (7, 2))]
    np.testing.assert_array_equal(found[0].index, plainly(records, candidates, 5))
    np.testing.assert_array_equal(found[0].index, found[1].index)
    np.testing.assert_array_equal(found[0].distance, found[1].distance)


@settings(max_examples=30)
@given(crowds(most=14))
def test_the_plain_route_is_the_exact_one(crowd):
    records, candidates, k = crowd
    for record in records[:3]:
        exact, gap = naive_vote.route(record, candidates, k)
        if gap > 1e-13 and candidates.shape[1] <= 5:
            assert nearest_candidates(record, candidates, k).tolist() == exact


def test_ties_go_to_the_lowest_index():
    candidates = np.array([[0.0, 1], [1, 0], [0, -1], [1, 0], [1, 0]], np.float32)
    record = np.array([[1.0, 0]], np.float32)
    for found in (
        route(record, candidates, 4).index[0],
        nearest_candidates(record[0], candidates, 4),
        reroute(route_retained(record, candidates, 2, [1]), record, candidates[[1]], np.array([1])).index[0],
    ):
        assert found.tolist() == [1, 3, 4, 0][: len(found)]


def test_what_cannot_be_routed_is_refused():
    records, candidates = embedded(1, 2, 4, 3, "random", "f")
    with pytest.raises(BankError, match="4 candidates, but each record votes for 5"):
        route(records, candidates, 5)
    with pytest.raises(BankError, match="3 candidates"):
        route_retained(records, candidates, 4, np.array([1]))
    with pytest.raises(DataError, match="3 dimensions and candidates 2"):
        route(records, candidates[:, :2], 2)
    for bad in (np.nan, np.inf):
        for which in (0, 1):
            spoilt = [records.copy(), candidates.copy()]
            spoilt[which][1, 2] = bad
            with pytest.raises(ModelError, match=r"row 1.*not finite"):
                route(*spoilt, 2)


@EDGES
@given(crowds(), st.lists(st.integers(0, 12), max_size=5), st.sampled_from([0.02, 0.1, 0.5, 3.0]))
def test_tallies_equal_the_plain_vote_user_by_user(crowd, cuts, clip):
    records, candidates, k = crowd
    offsets = np.array([0, *sorted(min(cut, len(records)) for cut in cuts), len(records)])
    mechanism = Mechanism(clip=clip, votes_per_record=k)
    votes = tally(route(records, candidates, k), offsets, mechanism, 48)
    assert len(votes) == len(offsets) - 1
    everywhere = votes.on(np.arange(len(candidates)), len(candidates))
    for user, (first, last) in enumerate(pairwise(offsets)):
        plain = vote(records[first:last], candidates, mechanism, 48)
        row = slice(votes.start[user], votes.start[user + 1])
        assert (np.diff(votes.index[row]) > 0).all()
        np.testing.assert_array_equal(plain[votes.index[row]], votes.units[row])
        assert plain.sum() == votes.units[row].sum()
        np.testing.assert_array_equal(everywhere[user] * 2.0**48, plain)
    some = np.arange(len(candidates))[::-2]
    np.testing.assert_array_equal(votes.on(some, len(candidates)), everywhere[:, some])


def test_a_user_without_records_votes_nothing():
    nobody = np.empty((0, 3), np.float32)
    assert not vote(nobody, np.eye(3), Mechanism(votes_per_record=2), 48).any()
    votes = tally(route(nobody, np.eye(3, dtype=np.float32), 2), np.array([0, 0, 0]), Mechanism(), 48)
    assert (len(votes), len(votes.units)) == (2, 0)


def counted(counts, clip, bits):
    """The grid vote of a user with the given counts, one vote a record."""
    routes = np.repeat(np.arange(len(counts), dtype=np.int32), counts)[:, None]
    found = tally(Routes(routes, np.zeros(routes.shape)), np.array([0, len(routes)]), Mechanism(clip=clip), bits)
    units = np.zeros(len(counts), np.int64)
    units[found.index] = found.units
    return units


COUNTS = st.lists(st.integers(0, 40), min_size=1, max_size=30).filter(any)


@settings(max_examples=150)
@given(COUNTS, st.one_of(st.floats(1e-4, 1e4), st.integers(-3, 3)), st.sampled_from([1, 1000, 10**6, 10**12]))
def test_a_grid_vote_is_the_true_vote_rounded_toward_zero_and_never_longer_than_c(counts, clip, eligible):
    if isinstance(clip, int):  # just around the user's own norm, where clipping starts
        around = math.sqrt(sum(count**2 for count in counts)) / sum(counts)
        clip = around * (1 + clip * 2.0**-53)
    bits = grid_bits(eligible, Mechanism(clip=clip))
    units = counted(counts, clip, bits)
    assert naive_vote.within_clip(units, clip, bits)
    for got, true in zip(units.tolist(), naive_vote.clipped(counts, clip, bits), strict=True):
        assert 0 <= got <= true * (1 + 2**-150)
        assert got > true * (1 - 2**-48) - 1


@settings(max_examples=100)
@given(st.integers(0, 10**6), st.integers(1, 5))
def test_sums_do_not_depend_on_sharding_or_order(seed, shards):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 4, 20)
    routes = np.sort(rng.integers(0, 9, (sizes.sum(), 3)), axis=1).astype(np.int32)
    offsets = np.cumsum([0, *sizes])
    taking_part = rng.random(20) < 0.5

    def total(groups):
        into = np.zeros(9, np.int64)
        for group in groups:
            rows = np.concatenate([np.arange(offsets[u], offsets[u + 1]) for u in group]) if len(group) else []
            part = Routes(routes[np.asarray(rows, int)], np.zeros((len(rows), 3)))
            votes = tally(part, np.cumsum([0, *sizes[group]]), Mechanism(), 48)
            add_votes(votes, taking_part[group], into)
        return into

    together = total([np.arange(20)])
    np.testing.assert_array_equal(total(np.array_split(rng.permutation(20), shards)), together)
    np.testing.assert_array_equal(total([np.flatnonzero(taking_part)]), together)


@given(st.integers(1, 10**12), st.floats(1e-4, 1e6), st.floats(0.01, 1e3))
def test_the_grid_is_as_fine_as_the_range_allows(eligible, clip, sigma):
    mechanism = Mechanism(clip=clip, sigma=sigma)
    bits = grid_bits(eligible, mechanism)
    reach = eligible * clip + 40 * mechanism.noise_std
    assert bits <= 48
    assert reach * 2.0**bits <= 2.0**62
    assert bits == 48 or reach * 2.0 ** (bits + 1) > 2.0**61


def test_the_grid_keeps_48_bits_where_it_can():
    assert grid_bits(1000, Mechanism()) == 48
    assert grid_bits(10**9, Mechanism(clip=1.0)) == 32
