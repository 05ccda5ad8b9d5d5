"""Distributed noise: every release carries the public level, at least the promise, whoever and however many took part.

Two-sided: the right variance is accepted, 2/3 and 3/2 of the deviation are rejected. Fewer than fifty checks, each
failing by chance with probability LEVEL.
"""

import numpy as np
import pytest
from oracles.naive_round import ballot
from scipy.stats import chi2, kstest, norm

from coalmine.clients.encoder.fake import HashEncoder
from coalmine.clients.population.availability import Independent
from coalmine.clients.population.conditions import Conditions
from coalmine.clients.shard import Hosted, Shard
from coalmine.protocol.bank import Bank, commit
from coalmine.protocol.noise import SharedNoise
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.randomness import Protected, Simulated
from coalmine.server.aggregate import Aggregator

pytestmark = pytest.mark.statistical

LEVEL = 5e-9
SIZE = 6000
ENCODER = HashEncoder(8)
BANK = Bank(tuple(f"candidate {n}" for n in range(SIZE)), ("",) * SIZE, ENCODER.id)
MECHANISM = Mechanism(q=0.5, sigma=0.8, clip=0.2, votes_per_record=1)
USERS = tuple(f"user {u}" for u in range(30))
SOURCES = [Simulated(4), Protected(bytes(range(32)))]


def fits(noise, std):
    total = float(noise @ noise) / std**2
    return chi2.ppf(LEVEL / 2, len(noise)) <= total <= chi2.isf(LEVEL / 2, len(noise))


def noise_of(sharing, randomness, conditions=None, forget_top_up=False):
    """A release of users who hold nothing, so that it is noise alone; and how many took part."""
    hosted = Hosted(USERS, np.empty((0, 8), np.float32), np.zeros(len(USERS) + 1, np.int64))
    worker = Shard(0, hosted, MECHANISM, randomness.participation_key, 40, conditions, (sharing, randomness))
    server = Aggregator(MECHANISM, 1, 40, randomness, sharing)
    came = []

    def hand_in(rounds, number, sums, shares):
        came.extend(shares)
        server.add(rounds, number, sums, [sharing.maximum] if forget_top_up else shares)

    worker.take_part(ballot(BANK, ENCODER, []), [0], None, hand_in)
    return server.release(0, commit(BANK)).histogram, came[0]


@pytest.mark.parametrize("randomness", SOURCES, ids=lambda source: source.kind)
@pytest.mark.parametrize("reachable", [1.0, 0.5, 0.0])
def test_a_topped_up_release_carries_the_public_level_whoever_is_left(randomness, reachable):
    sharing = SharedNoise(10, 25)
    noise, came = noise_of(sharing, randomness, Conditions(Independent(reachable)))
    assert came <= 25
    assert (came == 0) == (reachable == 0)
    std = sharing.carried(MECHANISM).noise_std
    assert std > MECHANISM.noise_std
    assert fits(noise, std)
    assert not fits(noise, std * 2 / 3)
    assert not fits(noise, std * 3 / 2)
    assert kstest(noise / std, norm.cdf).pvalue > LEVEL


def test_the_test_would_see_lost_shares():
    sharing = SharedNoise(10, 25)
    noise, came = noise_of(sharing, SOURCES[0], Conditions(Independent(0.5)), forget_top_up=True)
    assert fits(noise, MECHANISM.noise_std * np.sqrt(came / 10))
    assert not fits(noise, sharing.carried(MECHANISM).noise_std)


@pytest.mark.parametrize("randomness", SOURCES, ids=lambda source: source.kind)
def test_without_top_up_a_release_carries_a_share_of_each_survivor(randomness):
    noise, came = noise_of(SharedNoise(8, None), randomness)
    assert came > 8
    std = MECHANISM.noise_std * np.sqrt(came / 8)
    assert fits(noise, std)
    assert not fits(noise, std * 2 / 3)
    assert not fits(noise, std * 3 / 2)
