"""Streams are functions of what they are for; participation is a keyed coin of the right bias."""

import pickle

import numpy as np
import pytest
from scipy.stats import binom

from coalmine.protocol.randomness import Protected, Purpose, Simulated, participates, stream

SAFE = 1e-8
"""Of each of the few frequency tests here: together far below 1e-6."""


def first(*place):
    return tuple(stream(*place).integers(2**63, size=4).tolist())


def test_a_stream_is_repeatable_and_differs_by_every_component():
    places = [
        (seed, purpose, round, user)
        for seed in (0, 1, 10, 2**70)
        for purpose in Purpose
        for round in (0, 1, -1)
        for user in ("", "a", "1", "ü")
    ]
    assert first(*places[5]) == first(*places[5])
    assert len({first(*place) for place in places}) == len(places)


def test_components_do_not_run_into_each_other():
    assert first(1, Purpose.DATA, 0, "1") != first(11, Purpose.DATA, 0, "")
    assert first(0, Purpose.NONCE_USER, 0, "x") != first(0, Purpose.NONCE_POOL, 0, "x")


@pytest.mark.parametrize("q", [0.001, 0.1, 0.5, 0.97])
@pytest.mark.parametrize("by", ["round", "user", "key"])
def test_participation_happens_with_probability_q(q, by):
    n = 20_000
    key = Simulated(7).participation_key
    match by:
        case "round":
            count = sum(participates(key, round, "user", q) for round in range(n))
        case "user":
            count = sum(participates(key, 3, f"user {number}", q) for number in range(n))
        case "key":
            count = sum(participates(Simulated(seed).participation_key, 3, "user", q) for seed in range(n))
    assert binom.ppf(SAFE, n, q) <= count <= binom.isf(SAFE, n, q)


def test_participation_is_independent_between_users_and_rounds():
    key = Simulated(1).participation_key
    draws = np.array([[participates(key, round, f"u{user}", 0.5) for user in range(100)] for round in range(200)])
    for one, other in ((draws[1:], draws[:-1]), (draws[:, 1:], draws[:, :-1])):
        agree = int((one == other).sum())
        assert binom.ppf(SAFE, one.size, 0.5) <= agree <= binom.isf(SAFE, one.size, 0.5)


def test_everybody_takes_part_at_q_1_and_more_take_part_at_a_larger_q():
    key = Simulated(0).participation_key
    assert all(participates(key, round, "u", 1.0) for round in range(500))
    for round in range(200):
        drawn = [participates(key, round, "u", q) for q in (0.1, 0.4, 0.9)]
        assert drawn == sorted(drawn)


def test_draws_depend_on_key_round_and_user_alone():
    key, other = Simulated(0).participation_key, Simulated(1).participation_key
    drawn = [participates(key, round, "a", 0.5) for round in range(100)]
    assert drawn == [participates(key, round, "a", 0.5) for round in range(100)]
    assert drawn != [participates(other, round, "a", 0.5) for round in range(100)]
    assert drawn != [participates(key, round, "b", 0.5) for round in range(100)]


def test_a_secret_key_is_not_shown():
    source = Protected(b"\x01secret key of thirty-two bytes\x01")
    assert "secret" not in repr(source)
    assert "secret" not in str(source)
    assert "secret" not in f"{[source]}"


@pytest.mark.parametrize("source", [Simulated(3), Protected(b"k" * 32)])
def test_randomness_crosses_processes(source):
    again = pickle.loads(pickle.dumps(source))
    assert again == source
    assert again.participation_key == source.participation_key
    assert again.kind in ("simulated", "protected")


def test_kinds_are_told_apart():
    assert (Simulated(0).kind, Protected(b"").kind) == ("simulated", "protected")
    assert Simulated(0).participation_key != Simulated(1).participation_key
    assert len(Simulated(0).participation_key) == 32
