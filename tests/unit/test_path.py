"""The path of banks: budget, what the journal keeps, and numbers of rounds that never meet."""

import itertools

import numpy as np
import pytest

from coalmine.auditor.collector import Collector
from coalmine.deploy.attacking import replay_numbers
from coalmine.deploy.journal import Journal
from coalmine.deploy.path import claims, walk
from coalmine.deploy.replicas import replica_number
from coalmine.deploy.study_file import build_study
from coalmine.protocol.bank import Bank
from coalmine.protocol.errors import CommitmentMismatch, StudyError
from coalmine.protocol.pool import Tally, TextPool
from coalmine.protocol.release import Release
from coalmine.server.generate.fake import FakeGenerator

BANK = Bank(tuple(f"candidate {n}" for n in range(40)), tuple("ab" * 20), "encoder")
POSITIONS = np.array([3, 17, 30])
WRITTEN = TextPool(BANK.texts, tuple(range(40)), "fake", Tally(asked=40))


def study(**sections):
    return build_study(
        {
            "bank": {"size": 40},
            "rounds": {"count": 3, "keep": 0.2, "output": 25},
            "audit": {"probes": 3, "pool": 8, "canaries": 2, "canary_records": 3, "replays": 2, "replicas": 2},
            **sections,
        }
    )


class Voters:
    """A population whose noisy histogram is a function of round and bank."""

    def __init__(self):
        self.asked = []
        self.times = []

    def set_time(self, time):
        self.times.append(time)

    def releases(self, rounds, bank, commitment):
        self.asked += rounds
        mechanism = study().privacy.mechanism()
        return [
            Release(round, np.random.default_rng(round).normal(size=len(bank)), commitment, mechanism, "simulated")
            for round in rounds
        ]


def walked(folder, voters, chosen=None, **options):
    parts = FakeGenerator(), voters, Collector(), Journal(folder)
    return walk(chosen or study(), BANK, WRITTEN, POSITIONS, *parts, **options)


def test_every_bank_grows_from_the_release_before_and_keeps_the_declared_places(tmp_path):
    voters = Voters()
    steps = walked(tmp_path, voters)
    assert (voters.asked, voters.times) == ([0, 1, 2], [0, 1, 2])
    assert steps[0].bank == BANK
    for before, after in itertools.pairwise(steps):
        assert after.bank.labels == BANK.labels
        kept = [n for n in range(40) if before.bank.texts[n] == after.bank.texts[n]]
        best = {
            label: sorted(
                (n for n in range(40) if BANK.labels[n] == label and n not in POSITIONS),
                key=lambda n, histogram=before.release.histogram: -histogram[n],
            )[:4]
            for label in "ab"
        }
        assert set(kept) == {*best["a"], *best["b"], *POSITIONS.tolist()}
    for step in steps:
        assert len(step.texts) == 25
        assert not set(step.output.tolist()) & set(POSITIONS.tolist())


def test_a_round_in_the_journal_is_not_drawn_again(tmp_path):
    first, again = Voters(), Voters()
    steps = walked(tmp_path, first)
    (tmp_path / "releases" / "round-3.parquet").unlink()
    (tmp_path / "banks" / "round-3.parquet").unlink()
    resumed = walked(tmp_path, again)
    assert again.asked == [2]
    for one, other in zip(steps, resumed, strict=True):
        assert one.bank == other.bank
        np.testing.assert_array_equal(one.release.histogram, other.release.histogram)
        np.testing.assert_array_equal(one.output, other.output)


def test_a_release_of_another_bank_is_refused(tmp_path):
    walked(tmp_path, Voters())
    other = Bank(tuple(f"other {n}" for n in range(40)), BANK.labels, "encoder")
    with pytest.raises(CommitmentMismatch, match="round 1"):
        walk(study(), other, WRITTEN, POSITIONS, FakeGenerator(), Voters(), Collector(), Journal(tmp_path))


def test_claims_grow_and_the_budget_names_the_round_that_would_break_it():
    values = [claim.eps_pld_upper for claim in claims(study())]
    assert values == sorted(values)
    assert [claim.rounds for claim in claims(study())] == [1, 2, 3]
    with pytest.raises(StudyError, match=r"round 2 of 3 is not started.*at most 1"):
        claims(study(privacy={"max_eps": (values[0] + values[1]) / 2}))
    assert len(claims(study(privacy={"max_eps": values[2] + 1e-9}))) == 3


def test_published_claims_of_six_rounds():
    six = claims(study(privacy={"sigma": 1.1088}, rounds={"count": 6}))
    np.testing.assert_allclose([c.eps_prv for c in six], [1.345, 1.540, 1.682, 1.800, 1.905, 2.000], atol=1e-3)


def test_no_two_rounds_share_a_number():
    """Path, replays and replicas: a shared number would share participation and noise."""
    chosen = study()
    numbers = list(range(3))
    for attack in chosen.audit.attacks:
        for canary, round in itertools.product((1, 2), range(3)):
            numbers += replay_numbers(chosen, attack, canary, round)
        for eligible, replica, round in itertools.product((False, True), range(2), range(3)):
            numbers.append(replica_number(chosen, attack, eligible, replica, round))
    assert len(set(numbers)) == len(numbers)
