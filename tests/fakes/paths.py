"""Small random paths of rounds."""

import numpy as np

from coalmine.auditor.moments import Moments, moments
from coalmine.auditor.rounds.path import ScoredRound
from coalmine.auditor.score import score


def alone(mechanism, norm=None):
    """A canary whose vote has the given length, by default C, and nobody else."""
    background = Moments(np.zeros(1), np.full((1, 1), mechanism.noise_std**2))
    vote = np.array([mechanism.clip if norm is None else norm])
    return ScoredRound.among(score(background, vote, mechanism), np.zeros((3, 1)))


def votes_of(rng, users, coordinates, share=0.3, size=0.05):
    return rng.random((users, coordinates)) * (rng.random((users, coordinates)) < share) * size


def drawn(rng, mechanism, users=9, coordinates=4):
    """(votes, canary, score): the design comes from other users than those who vote."""
    canary = rng.random(coordinates)
    canary *= mechanism.clip * rng.uniform(0.7, 1) / np.linalg.norm(canary)
    design = moments(votes_of(rng, 30, coordinates), users, mechanism)
    return votes_of(rng, users, coordinates), canary, score(design, canary, mechanism)


def path(seed, rounds, mechanism, users=9):
    rng = np.random.default_rng(seed)
    return [ScoredRound.among(by, votes) for votes, _, by in (drawn(rng, mechanism, users) for _ in range(rounds))]
