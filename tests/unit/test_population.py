"""Clients that come and go: who would answer is a function of (key, purpose, time, user), and of nothing else."""

import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import naive_round
from scipy.stats import lognorm

from coalmine.clients.client import Client
from coalmine.clients.encoder.fake import HashEncoder
from coalmine.clients.population.availability import Always, Diurnal, Independent
from coalmine.clients.population.conditions import Conditions, Deadline
from coalmine.clients.population.trace import Trace, read_trace
from coalmine.clients.shard import Hosted, Shard
from coalmine.protocol.bank import Bank, commit
from coalmine.protocol.errors import DataError, StudyError
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.randomness import Simulated, participates
from coalmine.protocol.vote import grid_bits, vote
from coalmine.server.aggregate import Aggregator

KEY = Simulated(3).participation_key
USERS = [f"user {u}" for u in range(40)]
COMING = Conditions(Independent(0.6), dropout=0.2, deadline=Deadline(2.0))
ENCODER = HashEncoder(16)
MECHANISM = Mechanism(q=0.5, votes_per_record=2)
BITS = grid_bits(100, MECHANISM)
BANK = Bank(tuple(f"candidate {n} about {n % 5}" for n in range(20)), ("",) * 20, ENCODER.id)
BALLOT = naive_round.ballot(BANK, ENCODER, [])
RECORDS = {user: ENCODER.encode([f"{user} about {u % 5}", f"{user} once more"]) for u, user in enumerate(USERS)}


def shard(users=USERS, number=0, conditions=None):
    rows = np.concatenate([*(RECORDS[user] for user in users), np.empty((0, 16), np.float32)])
    return Shard(number, Hosted(tuple(users), rows, 2 * np.arange(len(users) + 1)), MECHANISM, KEY, BITS, conditions)


def sums(shard, rounds, time=None, guest=None):
    parts = []
    shard.take_part(BALLOT, rounds, guest, lambda _rounds, _number, sums: parts.append(sums), time)
    return parts[0]


def plainly(conditions, round, time):
    total = np.zeros(len(BANK), np.int64)
    for user in USERS:
        if participates(KEY, round, user, MECHANISM.q) and conditions.answers(KEY, time, user):
            total += vote(RECORDS[user], BALLOT.candidates, MECHANISM, BITS)
    return total


@pytest.mark.parametrize("conditions", [Conditions(), COMING, Conditions(Diurnal(0, 1)), Conditions(dropout=1.0)])
def test_a_shard_counts_whoever_is_drawn_and_would_answer(conditions):
    expected = np.array([plainly(conditions, round, round) for round in range(5)])
    np.testing.assert_array_equal(sums(shard(conditions=conditions), range(5)), expected)
    halves = [shard(USERS[:7], 0, conditions), shard(USERS[7:], 1, conditions)]
    np.testing.assert_array_equal(sum(sums(half, range(5)) for half in halves), expected)


def test_by_default_nothing_changes():
    np.testing.assert_array_equal(sums(shard(), range(9)), sums(shard(conditions=Conditions()), range(9)))
    plain = [(user, RECORDS[user]) for user in USERS]
    expected = [naive_round.noise_free_sum(plain, BALLOT, MECHANISM, BITS, KEY, round) for round in range(9)]
    np.testing.assert_array_equal(sums(shard(), range(9)), expected)


def test_repetitions_of_a_round_have_the_same_users_that_would_answer():
    worker = shard(conditions=COMING)
    expected = np.array([plainly(COMING, round, 4) for round in (10, 11, 12)])
    np.testing.assert_array_equal(sums(worker, [10, 11, 12], time=4), expected)
    seen = worker.votes_on(BALLOT, np.arange(20), 4)
    answering = COMING.answering(KEY, 4, USERS)
    assert 5 < answering.sum() < 35
    assert seen[answering].any(axis=1).all()
    assert not seen[~answering].any()
    # The simulation's owner can tell the sum of a round from who was drawn and these votes alone.
    drawn = [participates(KEY, 11, user, MECHANISM.q) for user in USERS]
    np.testing.assert_allclose(np.array(drawn) @ seen, expected[1] / 2.0**BITS, atol=1e-12)


def test_a_repeated_call_gives_the_same_sum_and_is_counted_once():
    first = sums(shard(conditions=COMING), [0, 1])
    np.testing.assert_array_equal(first, sums(shard(conditions=COMING), [0, 1]))
    np.testing.assert_array_equal(first[::-1], sums(shard(conditions=COMING), [1, 0]))
    noisy = []
    for repeats in (1, 3):
        server = Aggregator(MECHANISM, 1, BITS, Simulated(1))
        for _ in range(repeats):
            server.add([0, 1], 0, sums(shard(conditions=COMING), [0, 1]))
        noisy.append([server.release(round, commit(BANK)).histogram for round in (0, 1)])
    np.testing.assert_array_equal(noisy[0], noisy[1])


def test_a_round_in_which_nobody_answers_is_released_with_its_noise():
    empty = sums(shard(conditions=Conditions(Independent(0.0))), [0])
    assert not empty.any()
    server = Aggregator(MECHANISM, 1, BITS, Simulated(1))
    server.add([0], 0, empty)
    assert np.count_nonzero(server.release(0, commit(BANK)).histogram) == 20


def test_a_canary_is_always_there():
    guest = Client("canary", ENCODER.encode(["canary sings"]))
    nobody = shard(conditions=Conditions(dropout=1.0))
    seen = sums(nobody, range(20), guest=guest).any(axis=1)
    assert seen.tolist() == [participates(KEY, round, "canary", MECHANISM.q) for round in range(20)]
    assert 0 < seen.sum() < 20


@given(st.integers(0, 10**6), st.text(max_size=5), st.floats(0, 1), st.floats(0, 1), st.floats(0, 23.9))
def test_rates_are_probabilities_and_the_day_returns(time, user, low, high, peak):
    low, high = sorted((low, high))
    day = Diurnal(low, high, peak)
    assert low <= day.rate(KEY, time, user) <= high or math.isclose(low, high)
    assert math.isclose(day.rate(KEY, time, user), day.rate(KEY, time + 24, user), abs_tol=1e-6)


def test_the_day_peaks_at_the_local_hour():
    day = Diurnal(0.2, 0.8, peak=2.0, zones=((5.5, 1.0),))
    assert day.zone(KEY, "a") == 5.5
    half = Diurnal(0.2, 0.8, peak=2.0, hours_per_round=0.5, zones=((5.5, 1.0),))
    rates = [half.rate(KEY, time, "a") for time in range(48)]
    assert rates.index(max(rates)) * 0.5 == (2 - 5.5) % 24
    assert math.isclose(max(rates), 0.8)
    assert math.isclose(min(rates), 0.2)


def test_an_answer_in_time_has_its_lognormal_probability():
    assert math.isclose(Deadline(3.0, 2.0, 0.7).on_time, lognorm(0.7, scale=2.0).cdf(3.0))
    assert Deadline(1.0, 1.0, 0.0).on_time == 1
    assert Deadline(0.9, 1.0, 0.0).on_time == 0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Independent(1.1), r"population\.rate: 1\.1 is not allowed \(needs a number from 0 to 1\)"),
        (lambda: Independent(math.nan), "nan is not allowed"),
        (lambda: Diurnal(0.5, 0.4), "population.highest"),
        (lambda: Diurnal(0.1, 0.4, peak=24), "population.peak_hour"),
        (lambda: Diurnal(0.1, 0.4, hours_per_round=0), "population.hours_per_round"),
        (lambda: Diurnal(0.1, 0.4, zones=()), "no time zone"),
        (lambda: Diurnal(0.1, 0.4, zones=((15.0, 1.0),)), "population.zones"),
        (lambda: Diurnal(0.1, 0.4, zones=((1.0, -1.0),)), "population.zones"),
        (lambda: Conditions(dropout=-0.1), "population.dropout"),
        (lambda: Deadline(0), "population.deadline"),
        (lambda: Deadline(1, median=0), "population.median_delay"),
        (lambda: Deadline(1, spread=-1), "population.spread_delay"),
    ],
)
def test_a_value_out_of_range_is_refused(build, message):
    with pytest.raises(StudyError, match=message):
        build()


def test_only_the_default_is_ideal():
    assert Conditions().ideal
    assert Conditions(Always()).ideal
    assert not any(c.ideal for c in (COMING, Conditions(dropout=0.1), Conditions(deadline=Deadline(9))))


def written(folder, name, text):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "round,user\n0,u\n2,u\n1,u\n5,v\n"),
        ("a.csv", "user, round \r\nu,0\r\n\r\nu, 1\r\nu,2\r\nv,5"),
        ("a.csv", "\ufeffuser,from,to\nu,0,1\nu,1,2\nv,5,5\n"),
        ("a.jsonl", '{"user": "u", "from": 0, "to": 2}\n\n{"to": 5, "user": "v", "from": "5"}'),
        ("a.JSONL", '{"user": "u", "round": 0}\n{"user": "u", "from": 1, "to": 2}\n{"user": "v", "round": 5}'),
    ],
)
def test_a_trace_says_who_can_be_reached(tmp_path, name, text):
    trace = pickle.loads(pickle.dumps(read_trace(written(tmp_path, name, text))))
    assert [trace.rate(KEY, time, "u") for time in range(4)] == [1, 1, 1, 0]
    assert [trace.rate(KEY, time, "v") for time in (4, 5, 6)] == [0, 1, 0]
    assert trace.rate(KEY, 0, "w") == 0
    trace.check(["w", "v"])
    with pytest.raises(DataError, match="names none of the study's 1 voting users"):
        trace.check(["w"])


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5)), min_size=1, max_size=12))
def test_windows_are_the_union(windows):
    from coalmine.clients.population.trace import _merge

    trace = Trace({"u": _merge([(first, first + more) for first, more in windows])}, "here")
    for time in range(40):
        inside = any(first <= time <= first + more for first, more in windows)
        assert trace.rate(KEY, time, "u") == inside


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "round,user\n0,u\n-1,u\n", "line 3: field 'round' is not a round .*whole number from 0"),
        ("a.csv", "round,user\n0,u\n1.5,u\n", "line 3: field 'round'"),
        ("a.csv", "round,user\nsecret-id,0\n", "line 2: field 'round' is not a round"),
        ("a.csv", "round,user\n0, \n", "line 2: field 'user' is not a user id"),
        ("a.csv", "user,from,to\nu,0,\n", "line 2: field 'to'"),
        ("a.csv", "user,from,to\nu,3,2\n", "line 2: field 'to' lies before field 'from'"),
        ("a.csv", "user,from,to\nu,0,1\nu,0\n", "line 3: 2 fields, the header has 3"),
        ("a.csv", "user,rounds\nu,0\n", "line 1: the header does not name the fields .*user and round, or user, from"),
        ("a.csv", 'user,round\n"u,0\n', "malformed CSV"),
        ("a.csv", "user,round\n", "the trace is empty"),
        ("a.csv", "", "the trace is empty"),
        ("a.csv", b"user,round\n\xff,1\n", "not valid UTF-8"),
        ("a.jsonl", '{"user": "u", "round": 0}\n{"user": "u", "round"', "line 2: malformed JSON"),
        ("a.jsonl", '["u", 0]', "line 1: the object does not have the fields"),
        ("a.jsonl", '{"user": "u", "round": true}', "line 1: field 'round'"),
        ("a.jsonl", '{"user": 3, "round": 1}', "line 1: field 'user'"),
        ("a.jsonl", json.dumps({"user": "u", "round": 2**63}), "line 1: field 'round'"),
        ("a.txt", "", "neither .csv nor .jsonl"),
    ],
)
def test_a_malformed_trace_is_named_by_line_and_field(tmp_path, name, text, message):
    with pytest.raises(DataError, match=message) as caught:
        read_trace(written(tmp_path, name, text))
    assert str(tmp_path / name) in str(caught.value)
    assert "secret-id" not in str(caught.value)


def test_a_missing_trace_is_named(tmp_path):
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_trace(tmp_path / "none.csv")
