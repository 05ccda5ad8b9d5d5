"""Draws over several rounds: what they depend on, and what is counted."""

import numpy as np
import pytest
from fakes import paths

from coalmine.auditor.cohorts import CHUNK
from coalmine.auditor.rounds import monte_carlo, variance_reduced
from coalmine.auditor.rounds.proposal import Proposal
from coalmine.protocol.errors import StudyError
from coalmine.protocol.privacy import Mechanism

MECHANISM = Mechanism(q=0.2, sigma=0.8)
PATH = paths.path(0, 3, MECHANISM)
LEVELS = [[0.3, -0.1], [0.5], [0.2, 0.9, -np.inf]]
TRIALS = CHUNK + 100
PROPOSALS = tuple(Proposal.likely(each, 1e-5) for each in PATH)


def test_counts_are_those_of_the_sums():
    counted = monte_carlo.count(PATH, LEVELS, TRIALS, 5, name="a")
    absent, present = monte_carlo.sums(PATH, TRIALS, 5, name="a")
    for t, levels in enumerate(LEVELS):
        np.testing.assert_array_equal(counted.tp[t], (present[t][:, None] > levels).sum(axis=0))
        np.testing.assert_array_equal(counted.fp[t], (absent[t][:, None] > levels).sum(axis=0))
    assert counted.tp[2][2] == TRIALS


def test_threads_do_not_matter_and_names_and_seeds_do():
    one, four = (monte_carlo.count(PATH, LEVELS, TRIALS, 5, name="a", threads=n) for n in (1, 4))
    for t in range(3):
        np.testing.assert_array_equal(one.tp[t], four.tp[t])
    assert any((monte_carlo.count(PATH, LEVELS, TRIALS, 5, name="b").tp[t] != one.tp[t]).any() for t in range(3))
    assert any((monte_carlo.count(PATH, LEVELS, TRIALS, 6, name="a").tp[t] != one.tp[t]).any() for t in range(3))
    drawn = [variance_reduced.draw(PATH, PROPOSALS, [0.5] * 3, TRIALS, 5, name="a", threads=n) for n in (1, 3)]
    for first, second in zip(*drawn, strict=True):
        np.testing.assert_array_equal(first.present, second.present)


def test_later_rounds_do_not_change_a_prefix():
    whole, part = (monte_carlo.count(PATH[:n], LEVELS[:n], TRIALS, 5) for n in (3, 2))
    for t in range(2):
        np.testing.assert_array_equal(whole.tp[t], part.tp[t])
        np.testing.assert_array_equal(whole.fp[t], part.fp[t])


def test_rounds_and_hypotheses_are_drawn_as_they_should_be():
    absent, present = monte_carlo.sums([PATH[0]] * 3, 40_000, 5)
    rounds = np.diff(absent, axis=0, prepend=0)
    assert np.abs(np.corrcoef(rounds)[np.triu_indices(3, 1)]).max() < 0.03, "noise and cohorts are new in every round"
    moved = np.diff(present, axis=0, prepend=0) - rounds > 1e-9
    assert np.abs(moved.mean(axis=1) - 0.2).max() < 0.013
    assert abs(np.corrcoef(moved)[0, 1]) < 0.03


def test_bad_input_is_refused():
    for levels in ([0.1, 0.2], [0.1, 0.2, np.nan]):
        with pytest.raises(StudyError):
            monte_carlo.count(PATH, levels, 10, 0)
    with pytest.raises(StudyError):
        monte_carlo.count([], [], 10, 0)
    with pytest.raises(StudyError):
        monte_carlo.count(PATH, [0, 0, 0], 0, 0)
    with pytest.raises(StudyError):
        variance_reduced.draw(PATH, PROPOSALS, [0.1, np.nan, 0.2], 10, 0)
    with pytest.raises(StudyError):
        variance_reduced.draw(PATH, PROPOSALS, [[0.1, 0.2], 0.1, 0.2], 10, 0)
