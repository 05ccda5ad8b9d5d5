"""A shard equals its clients one by one, whatever the number of shards and whatever it remembers."""

import numpy as np
import pytest
from oracles import naive_round

from coalmine.clients.client import Client
from coalmine.clients.encoder.fake import HashEncoder
from coalmine.clients.shard import Hosted, Shard
from coalmine.protocol.ballot import Ballot
from coalmine.protocol.bank import Bank, commit
from coalmine.protocol.errors import BankError, CommitmentMismatch, ModelError
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.randomness import Simulated
from coalmine.protocol.vote import grid_bits, vote

ENCODER = HashEncoder(16)
MECHANISM = Mechanism(q=0.5, votes_per_record=3)
KEY = Simulated(5).participation_key
BITS = grid_bits(100, MECHANISM)
BANK = Bank(tuple(f"word{n % 7} word{n % 5} text {n}" for n in range(40)), ("",) * 40, ENCODER.id)
POSITIONS = [3, 4, 20]
BALLOT = naive_round.ballot(BANK, ENCODER, POSITIONS)
ROUNDS = [0, 7, 8]
SIZES = [3, 0, 1, 5, 2, 4, 1, 6, 0, 2, 3, 3]
USERS = [
    (f"user {u}", ENCODER.encode([f"word{(u * 3 + r) % 7} record {r} of {u}" for r in range(size)]))
    for u, size in enumerate(SIZES)
]
GUEST = Client("guest", ENCODER.encode([f"word{r} guest" for r in range(6)]))


def host(users):
    records = [rows for _, rows in users]
    offsets = np.cumsum([0, *map(len, records)]).astype(np.int64)
    return Hosted(tuple(name for name, _ in users), np.concatenate([*records, np.empty((0, 16), np.float32)]), offsets)


def shard(users=tuple(USERS), number=0):
    return Shard(number, host(users), MECHANISM, KEY, BITS)


def handed_in(shard, ballot=BALLOT, rounds=tuple(ROUNDS), guest=None):
    calls = []
    shard.take_part(ballot, rounds, guest, lambda *call: calls.append(call))
    ((named, number, sums),) = calls
    assert tuple(named) == tuple(rounds)
    assert sums.dtype == np.int64
    return number, sums


def plainly(users=tuple(USERS), ballot=BALLOT, rounds=tuple(ROUNDS)):
    return np.array([naive_round.noise_free_sum(users, ballot, MECHANISM, BITS, KEY, round) for round in rounds])


@pytest.mark.parametrize("shards", [1, 2, 5, 20])
def test_shards_together_hand_in_the_sum_of_plain_clients(shards):
    parts = [list(part) for part in np.array_split(np.arange(len(USERS)), shards)]
    answers = [handed_in(shard([USERS[u] for u in part], number)) for number, part in enumerate(parts)]
    assert [number for number, _ in answers] == list(range(shards))
    expected = plainly()
    assert expected.any(axis=1).all()
    np.testing.assert_array_equal(sum(sums for _, sums in answers), expected)


def test_a_client_votes_as_the_plain_definition_says():
    for name, records in USERS:
        client = Client(name, records)
        plain = vote(records, BALLOT.candidates, MECHANISM, BITS)
        np.testing.assert_array_equal(client.vote(BALLOT, MECHANISM, BITS), plain)
        np.testing.assert_array_equal(client.votes_on(BALLOT.candidates, MECHANISM, BITS), plain)


def test_repeating_a_call_gives_the_same_sum():
    worker = shard()
    first = handed_in(worker)[1]
    np.testing.assert_array_equal(handed_in(worker)[1], first)
    np.testing.assert_array_equal(handed_in(shard())[1], first)
    np.testing.assert_array_equal(handed_in(worker, rounds=ROUNDS[::-1])[1], first[::-1])


def test_a_guest_is_eligible_only_when_named():
    worker, rounds = shard(), list(range(12))
    before = handed_in(worker, rounds=rounds)[1]
    visited = handed_in(worker, rounds=rounds, guest=GUEST)[1]
    after = handed_in(worker, rounds=rounds)[1]
    np.testing.assert_array_equal(before, after)
    expected = plainly([("guest", GUEST.records)], rounds=rounds)
    np.testing.assert_array_equal(visited - before, expected)
    took_part = [GUEST.takes_part(KEY, round, MECHANISM.q) for round in rounds]
    assert 0 < sum(took_part) < len(rounds)
    assert expected.any(axis=1).tolist() == took_part


@pytest.mark.parametrize("guest", [None, GUEST])
def test_a_wrong_commitment_is_refused_and_nothing_is_handed_in(guest):
    other = BANK.replace({0: "swapped"})
    for wrong in (
        Ballot(BANK, commit(other), BALLOT.candidates, BALLOT.positions),
        Ballot(other, commit(BANK), ENCODER.encode(other.texts), BALLOT.positions),
    ):
        worker, calls = shard(), []
        handed_in(worker)  # what was voted on before does not help
        with pytest.raises(CommitmentMismatch):
            worker.take_part(wrong, ROUNDS, guest, lambda *call, calls=calls: calls.append(call))
        assert calls == []
        with pytest.raises(CommitmentMismatch):
            worker.votes_on(wrong, np.array([0]))
        with pytest.raises(CommitmentMismatch):
            GUEST.vote(wrong, MECHANISM, BITS)


def test_an_unknown_round_number_changes_only_who_takes_part():
    np.testing.assert_array_equal(handed_in(shard(), rounds=[10**6])[1], plainly(rounds=[10**6]))


MOVED = Bank(
    tuple(BANK.texts[n] for n in [*POSITIONS, *(n for n in range(40) if n not in POSITIONS)]), BANK.labels, ENCODER.id
)
"""The same candidates beside the probes, at other places."""


def planted(changes, positions=POSITIONS):
    return naive_round.ballot(BANK.replace(changes), ENCODER, positions)


@pytest.mark.parametrize(
    "second",
    [
        planted({12: "word3 record 0 of 1"}),  # not a probe: the retained routes must not be used again
        planted({3: "word3 record 1 of 0", 20: "word6 record"}),
        planted({3: "word3 record 1 of 0"}, [3, 4, 20, 21]),
        planted({}, [0, 1, 2]),
        naive_round.ballot(MOVED, ENCODER, [0, 1, 2]),
        planted({}, []),
        naive_round.ballot(Bank(BANK.texts[::-1], BANK.labels, BANK.encoder_id), ENCODER, POSITIONS),
        naive_round.ballot(Bank(BANK.texts[:30], BANK.labels[:30], BANK.encoder_id), ENCODER, POSITIONS),
    ],
)
def test_what_a_shard_remembers_never_serves_another_bank(second):
    worker = shard()
    for ballot in (BALLOT, second, BALLOT, second):
        np.testing.assert_array_equal(handed_in(worker, ballot)[1], plainly(ballot=ballot))


def test_every_changed_candidate_is_noticed():
    worker = shard()
    for place in range(0, 40, 3):
        ballot = planted({place: "word1 word3 record"})
        np.testing.assert_array_equal(handed_in(worker, ballot)[1], plainly(ballot=ballot))


def test_votes_on_some_coordinates_are_those_of_the_clients():
    coordinates = np.array([30, 3, 4])
    expected = [vote(records, BALLOT.candidates, MECHANISM, BITS)[coordinates] / 2.0**BITS for _, records in USERS]
    np.testing.assert_array_equal(shard().votes_on(BALLOT, coordinates), expected)


def test_another_dimension_is_refused():
    narrow = Ballot(BANK, commit(BANK), np.ascontiguousarray(BALLOT.candidates[:, :8]), BALLOT.positions)
    with pytest.raises(ModelError, match="16 dimensions, the bank 8"):
        shard().votes_on(narrow, np.array([0]))
    with pytest.raises(BankError, match="40 candidates but 39 embeddings"):
        Ballot(BANK, commit(BANK), BALLOT.candidates[1:], BALLOT.positions)


def test_private_data_is_not_shown():
    assert "array" not in repr(GUEST)
