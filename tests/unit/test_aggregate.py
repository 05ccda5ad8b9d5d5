"""The aggregator counts every part once, releases a round once, and only with its noise."""

import numpy as np
import pytest

from coalmine.protocol.bank import Bank, commit
from coalmine.protocol.errors import ContributionError
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.randomness import Protected, Simulated
from coalmine.server.aggregate import Aggregator, draw_noise

BITS, SIZE = 20, 6
MECHANISM = Mechanism(sigma=0.5, clip=0.25)
COMMITMENT = commit(Bank(tuple("abcdef"), ("",) * SIZE, "e"))
SEED = Simulated(11)


def part(*values):
    return np.array([np.full(SIZE, value) for value in values], np.int64)


def aggregator(shards=2, randomness=SEED):
    return Aggregator(MECHANISM, shards, BITS, randomness)


def sum_of(release, round):
    """What was summed, the known noise taken off."""
    noise = draw_noise(SEED, MECHANISM.noise_std, BITS, SIZE, round)
    return np.rint(release.histogram * 2**BITS).astype(int) - noise


def test_parts_of_all_shards_are_summed_and_the_noise_is_added():
    server = aggregator()
    server.add([4, 5], 1, part(10, 20))
    server.add([4, 5], 0, part(1, 2))
    for round, total in ((5, 22), (4, 11)):
        release = server.release(round, COMMITMENT)
        assert sum_of(release, round).tolist() == [total] * SIZE
        assert (release.round, release.commitment, release.mechanism) == (round, COMMITMENT, MECHANISM)
        assert release.randomness == "simulated"
        assert release.histogram.dtype == np.float64
        assert (release.histogram * 2**BITS != total).any()


def test_a_repeated_part_is_ignored():
    server = aggregator()
    server.add([0], 0, part(1))
    server.add([0, 1], 0, part(1, 5))  # a restarted shard repeats itself, and goes on
    server.add([0, 1], 1, part(10, 50))
    server.add([0], 1, part(10))
    assert sum_of(server.release(0, COMMITMENT), 0).tolist() == [11] * SIZE
    assert sum_of(server.release(1, COMMITMENT), 1).tolist() == [55] * SIZE


def test_a_part_is_not_changed_and_not_kept_by_reference():
    server, mine = aggregator(), part(1)
    server.add([0], 0, mine)
    mine += 1000
    server.add([0], 1, part(2))
    assert sum_of(server.release(0, COMMITMENT), 0).tolist() == [3] * SIZE
    assert mine.tolist() == part(1001).tolist()


def test_a_round_is_released_once_and_stays_closed():
    server = aggregator(shards=1)
    server.add([0], 0, part(1))
    server.release(0, COMMITMENT)
    for _ in range(2):
        with pytest.raises(ContributionError, match="round 0: this round was already released"):
            server.release(0, COMMITMENT)
        server.add([0], 0, part(1))  # a late repetition is ignored, and opens nothing


@pytest.mark.parametrize("heard", [[], [0], [1], [1, 1]])
def test_a_missing_shard_stops_the_release(heard):
    server = aggregator()
    for number in heard:
        server.add([0], number, part(1))
    with pytest.raises(ContributionError, match="round 0: a shard has not handed in its part"):
        server.release(0, COMMITMENT)
    for number in (0, 1):
        server.add([0], number, part(1))
    assert sum_of(server.release(0, COMMITMENT), 0).tolist() == [2] * SIZE


@pytest.mark.parametrize("number", [-1, 2, 100])
def test_an_unknown_shard_is_refused(number):
    with pytest.raises(ContributionError, match=f"shard {number}: a shard that does not belong"):
        aggregator().add([0], number, part(1))


@pytest.mark.parametrize(
    "sums", [part(1).astype(float), part(1).astype(np.int32), part(1)[0], part(1, 2), np.empty((0, SIZE), np.int64)]
)
def test_sums_of_another_shape_or_type_are_refused(sums):
    server = aggregator(shards=1)
    with pytest.raises(ContributionError, match="int64 grid units, one row a round"):
        server.add([0], 0, sums)
    with pytest.raises(ContributionError, match="not handed in"):
        server.release(0, COMMITMENT)


def test_sums_over_another_bank_are_refused():
    server = aggregator()
    server.add([0], 0, part(1))
    with pytest.raises(ContributionError, match="shard 1, round 0: sums over banks of different sizes"):
        server.add([0], 1, part(1)[:, :3])


def test_the_empty_cohort_is_released_like_any_other():
    server = aggregator(shards=1)
    server.add([0], 0, part(0))
    assert np.count_nonzero(server.release(0, COMMITMENT).histogram) == SIZE


def test_simulated_noise_repeats_and_protected_noise_does_not():
    def noise(randomness, round):
        return draw_noise(randomness, 0.1, 48, 50, round).tolist()

    assert noise(SEED, 3) == noise(SEED, 3)
    assert noise(SEED, 3) != noise(SEED, 4)
    assert noise(SEED, 3) != noise(Simulated(12), 3)
    secret = Protected(b"k" * 32)
    assert noise(secret, 3) != noise(secret, 3)


@pytest.mark.parametrize("randomness", [SEED, Protected(b"k" * 32)])
def test_releases_lie_on_the_grid(randomness):
    server = aggregator(1, randomness)
    server.add([0], 0, part(7))
    release = server.release(0, COMMITMENT)
    units = release.histogram * 2.0**BITS
    np.testing.assert_array_equal(units, np.rint(units))
    assert release.randomness == randomness.kind


def test_noise_of_a_full_grid_does_not_overflow():
    for randomness in (SEED, Protected(b"")):
        noise = draw_noise(randomness, 2.0, 56, 1000, 0)
        assert noise.dtype == np.int64
        assert 2**56 < np.abs(noise).max() < 2**60
