"""The server publishes its commitment before anybody is drawn, and passes on releases and nothing else."""

import numpy as np
import pytest

from coalmine.protocol.bank import Bank, commit
from coalmine.protocol.errors import CommitmentMismatch, ProtocolError
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.release import Release
from coalmine.server.round import run_rounds

BANK = Bank(("a", "b"), ("", ""), "e")


class Diary:
    """An audit sink and a population that write down what they are told, in order."""

    def __init__(self, refuses=False, deaf=False):
        self.events = []
        self.refuses, self.deaf = refuses, deaf

    def committed(self, round, commitment):
        self.events.append(("committed", round, commitment))
        if self.deaf:
            raise ProtocolError("a second commitment")

    def released(self, release):
        self.events.append(("released", release.round, release.commitment))

    def releases(self, rounds, bank, commitment):
        self.events.append(("asked", tuple(rounds), bank, commitment))
        if self.refuses:
            raise CommitmentMismatch("refused")
        return [Release(round, np.zeros(2), commitment, Mechanism(), "simulated") for round in rounds]


def test_every_commitment_is_told_before_the_population_is_asked():
    diary = Diary()
    releases = run_rounds([3, 4], BANK, diary, diary)
    published = commit(BANK)
    assert diary.events == [
        ("committed", 3, published),
        ("committed", 4, published),
        ("asked", (3, 4), BANK, published),
        ("released", 3, published),
        ("released", 4, published),
    ]
    assert [release.round for release in releases] == [3, 4]


def test_nothing_is_released_when_clients_refuse():
    diary = Diary(refuses=True)
    with pytest.raises(CommitmentMismatch):
        run_rounds([0], BANK, diary, diary)
    assert [event[0] for event in diary.events] == ["committed", "asked"]


def test_nobody_is_asked_when_the_commitment_is_not_accepted():
    diary = Diary(deaf=True)
    with pytest.raises(ProtocolError):
        run_rounds([0, 1], BANK, diary, diary)
    assert [event[0] for event in diary.events] == ["committed"]
