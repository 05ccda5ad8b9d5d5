"""Noise in shares: who adds how much is public, every part is counted once, and an abort is an abort."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from coalmine.auditor.report.wording import attacker, promise
from coalmine.clients.client import Client
from coalmine.clients.encoder.fake import HashEncoder
from coalmine.clients.population.availability import Independent
from coalmine.clients.population.conditions import Conditions
from coalmine.clients.shard import Hosted, Shard
from coalmine.deploy.study_file import build_study
from coalmine.protocol.accounting import claim, pld_epsilon
from coalmine.protocol.bank import Bank, commit
from coalmine.protocol.errors import ContributionError, RoundAborted, StudyError
from coalmine.protocol.noise import SharedNoise, grid_noise, most_participants
from coalmine.protocol.privacy import Adjacency, Mechanism, PrivacyUnit, ThreatModel
from coalmine.protocol.randomness import Purpose, Simulated, participates
from coalmine.server.aggregate import Aggregator, draw_noise

MECHANISM = Mechanism(q=0.5, sigma=1.0, clip=0.1, votes_per_record=2)
BITS, SIZE = 40, 12
SEED = Simulated(11)
ENCODER = HashEncoder(16)
BANK = Bank(tuple(f"candidate {n}" for n in range(SIZE)), ("",) * SIZE, ENCODER.id)
COMMITMENT = commit(BANK)
USERS = [f"user {u}" for u in range(10)]
RECORDS = ENCODER.encode([f"{user} writes" for user in USERS])
TOPPED = SharedNoise(4, 9)


def shard(sharing=TOPPED, number=0, users=slice(None), conditions=None):
    hosted = Hosted(tuple(USERS[users]), RECORDS[users], np.arange(len(USERS[users]) + 1))
    shares = None if sharing is None else (sharing, SEED)
    return Shard(number, hosted, MECHANISM, SEED.participation_key, BITS, conditions, shares)


def part(worker, rounds, guest=None):
    from oracles.naive_round import ballot

    calls = []
    worker.take_part(ballot(BANK, ENCODER, []), rounds, guest, lambda *call: calls.append(call))
    return calls[0]


def share(user, round):
    return grid_noise(SEED, Purpose.NOISE_SHARE, TOPPED.share_std(MECHANISM), BITS, SIZE, round, user)


def test_each_participant_adds_its_own_share_and_says_nothing_else():
    guest = Client("canary", ENCODER.encode(["sings"]))
    _, _, sums, came = part(shard(), range(6), guest)
    _, _, plain = part(shard(None), range(6), guest)
    for round in range(6):
        taking = [u for u in [*USERS, "canary"] if participates(SEED.participation_key, round, u, 0.5)]
        np.testing.assert_array_equal(sums[round] - plain[round], sum((share(u, round) for u in taking), np.int64(0)))
        assert came[round] == len(taking)


def test_shares_do_not_depend_on_shards_or_repetition():
    whole = part(shard(), range(3))
    parts = [part(shard(number=n, users=users), range(3)) for n, users in enumerate((slice(0, 3), slice(3, None)))]
    np.testing.assert_array_equal(sum(sums for _, _, sums, _ in parts), whole[2])
    assert [a + b for a, b in zip(parts[0][3], parts[1][3], strict=True)] == whole[3]
    np.testing.assert_array_equal(part(shard(), range(3))[2], whole[2])


def test_a_dropout_takes_its_share_away():
    away = Conditions(Independent(0.0))
    _, _, sums, came = part(shard(conditions=away), [0])
    assert came == [0]
    assert not sums.any()


def test_a_trusted_aggregator_tops_up_what_is_missing_to_the_public_level():
    for survivors in (0, 3, 4, 8, 9, 11):
        server = Aggregator(MECHANISM, 1, BITS, SEED, TOPPED)
        server.add([0], 0, np.zeros((1, SIZE), np.int64), [survivors])
        got = np.rint(server.release(0, COMMITMENT).histogram * 2**BITS)
        std = MECHANISM.noise_std * math.sqrt(max(0, 9 - survivors) / 4)
        expected = draw_noise(SEED, std, BITS, SIZE, 0) if std else np.zeros(SIZE)
        np.testing.assert_array_equal(got, expected)


def test_a_repeated_part_brings_its_shares_once():
    server = Aggregator(MECHANISM, 2, BITS, SEED, SharedNoise(1, 3))
    for _ in range(3):
        server.add([0], 0, np.zeros((1, SIZE), np.int64), [2])
    server.add([0], 1, np.zeros((1, SIZE), np.int64), [1])
    assert not server.release(0, COMMITMENT).histogram.any()  # three shares came: nothing is missing


def test_without_trust_too_few_survivors_abort_the_round_for_good():
    server = Aggregator(MECHANISM, 2, BITS, SEED, SharedNoise(4, None))
    server.add([0, 1], 0, np.ones((2, SIZE), np.int64), [1, 1])
    server.add([0, 1], 1, np.ones((2, SIZE), np.int64), [2, 3])
    with pytest.raises(RoundAborted, match=r"fewer than 4 participants survived.*itself a disclosure") as caught:
        server.release(0, COMMITMENT)
    assert caught.value.exit_code == 2
    assert "3" not in str(caught.value)  # how many did is nobody's business
    with pytest.raises(ContributionError, match="already released"):
        server.release(0, COMMITMENT)
    np.testing.assert_array_equal(server.release(1, COMMITMENT).histogram * 2**BITS, np.full(SIZE, 2))


@pytest.mark.parametrize(("sharing", "shares"), [(None, [1]), (TOPPED, None), (TOPPED, [1, 2]), (TOPPED, [])])
def test_shares_that_do_not_fit_are_refused(sharing, shares):
    server = Aggregator(MECHANISM, 1, BITS, SEED, sharing)
    with pytest.raises(ContributionError, match="noise shares do not fit"):
        server.add([0], 0, np.zeros((1, SIZE), np.int64), shares)


@given(st.integers(1, 50), st.integers(0, 50), st.integers(0, 200), st.floats(0.1, 5))
def test_variances_add_up_to_at_least_the_promise_and_to_the_same_for_every_cohort(minimum, more, survivors, sigma):
    mechanism, sharing = Mechanism(sigma=sigma), SharedNoise(minimum, minimum + more)
    total = survivors * sharing.share_std(mechanism) ** 2 + sharing.top_up_std(mechanism, survivors) ** 2
    assert total >= mechanism.noise_std**2 * (1 - 1e-12)
    if survivors <= sharing.maximum:
        assert math.isclose(total, sharing.carried(mechanism).noise_std ** 2)
    untrusted = SharedNoise(minimum, None)
    assert untrusted.top_up_std(mechanism, survivors) == 0
    assert untrusted.carried(mechanism) == mechanism


@pytest.mark.parametrize(("eligible", "q"), [(1, 0.1), (101, 0.1), (8001, 0.1), (50, 1.0)])
def test_more_participants_than_the_public_number_never_come(eligible, q):
    most = most_participants(eligible, q)
    assert binom.sf(most, eligible, q) <= 1e-12
    assert binom.sf(most - 1, eligible, q) > 1e-12 or most == 0
    assert q * eligible <= most <= eligible


@pytest.mark.parametrize(
    ("arguments", "message"), [((0, 5), "needs at least one"), ((6, 5), "no more than 5 users ever")]
)
def test_a_share_that_cannot_be_sized_is_refused(arguments, message):
    with pytest.raises(StudyError, match=message):
        SharedNoise(*arguments)


def test_the_claim_against_whoever_sees_cohorts_counts_on_no_drawing():
    seen = claim(MECHANISM, 2, PrivacyUnit.USER, ThreatModel.COHORT)
    hidden = claim(MECHANISM, 2)
    assert (seen.q, seen.adjacency, seen.threat_model) == (1.0, Adjacency.ZERO_OUT, ThreatModel.COHORT)
    assert (hidden.q, hidden.adjacency) == (0.5, Adjacency.ADD_REMOVE)
    assert (seen.eps_pld_lower, seen.eps_pld_upper) == pld_epsilon(1.0, 1.0, 2, 1e-5)
    assert seen.eps_pld_lower > hidden.eps_pld_upper
    assert "an abort" not in attacker(hidden)
    assert "aborted, and that is itself a disclosure" in attacker(seen)
    assert "takes part either way" in promise(seen)
    assert promise(hidden).endswith("is eligible")


@pytest.mark.parametrize("word", [*ThreatModel, *Adjacency])
def test_every_threat_model_and_adjacency_has_its_wording(word):
    from coalmine.auditor.report import wording

    assert word in (wording._ATTACKERS if isinstance(word, ThreatModel) else wording._PROMISES)


def test_a_study_says_what_its_noise_means():
    central = build_study({})
    assert (central.sharing(), central.threat_model) == (None, ThreatModel.RELEASE_ONLY)
    assert central.carried() == central.privacy.mechanism()
    trusted = build_study({"noise": {"mode": "distributed", "survivors": 5}})
    assert trusted.sharing() == SharedNoise(5, most_participants(101, 0.1))
    assert trusted.threat_model is ThreatModel.RELEASE_ONLY
    assert trusted.carried().noise_std > trusted.privacy.mechanism().noise_std
    alone = {"noise": {"mode": "distributed", "survivors": 5, "aggregator": "untrusted"}}
    untrusted = build_study(alone | {"audit": {"replays": 0}})
    assert untrusted.sharing() == SharedNoise(5, None)
    assert untrusted.threat_model is ThreatModel.COHORT
    for values, message in (
        (alone, "set audit.replays to 0"),
        ({"noise": {"mode": "distributed"}}, "needs survivors"),
        ({"noise": {"aggregator": "untrusted"}}, "'central' needs a trusted aggregator"),
        ({"noise": {"mode": "distributed", "survivors": 102}}, "no more than .* users ever take part"),
        ({"noise": {"mode": "distributed", "survivors": 0}}, r"noise\.survivors"),
    ):
        with pytest.raises(StudyError, match=message):
            build_study(values)
