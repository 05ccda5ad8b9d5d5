"""Where the distance to the promised epsilon goes over several rounds: the single round's steps, each composed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coalmine.auditor.background import Array
from coalmine.auditor.moments import Moments, moments
from coalmine.auditor.rounds.composition import compose
from coalmine.auditor.rounds.path import ScoredRound
from coalmine.auditor.score import score
from coalmine.auditor.waterfall import Step
from coalmine.protocol.privacy import Assurance, Mechanism

_POINTS = 1 << 11
"""A step is shown to three digits; half the grid's points give away a few 1e-5."""


def composed_steps(
    mechanism: Mechanism, canary_norms: Sequence[float], canary_votes: Sequence[Array], test_votes: Sequence[Array]
) -> list[tuple[Step, ...]]:
    """Per prefix the steps from the ceiling to other users' traffic; the audit's own evidence supplies the rest.

    Args:
        canary_norms: per round, L2 norm of the canary's clipped vote on the whole bank, at most C.
        canary_votes: per round (r,), the same vote on the audited coordinates.
        test_votes: per round (N, r), clipped votes of the true test users there.
    """
    audited = [float(np.linalg.norm(vote)) for vote in canary_votes]
    full = _alone(mechanism.clip, mechanism)
    stages = (
        ("ceiling", "Votes of full length C that nobody else disturbs.", [full] * len(canary_votes)),
        (
            "clipping slack",
            "The canary's clipped votes may be shorter than C.",
            [_alone(norm, mechanism) for norm in canary_norms],
        ),
        (
            "votes that miss the coordinates",
            "Part of the canary's votes falls on coordinates that are not audited.",
            [_alone(norm, mechanism) for norm in audited],
        ),
        (
            "other users' traffic",
            "Other users vote on the audited coordinates too; their true moments are known here.",
            [
                ScoredRound.among(score(moments(votes, len(votes), mechanism), vote, mechanism), votes)
                if norm
                else None
                for votes, vote, norm in zip(test_votes, canary_votes, audited, strict=True)
            ],
        ),
    )
    columns = [
        [Step(name, low, why, Assurance.EXACT, high - low) for low, high in _epsilons(rounds, mechanism.delta)]
        for name, why, rounds in stages
    ]
    return list(zip(*columns, strict=True))


def _alone(norm: float, mechanism: Mechanism) -> ScoredRound | None:
    """A canary without anybody else; ``None`` without a vote."""
    if norm == 0:
        return None
    background = Moments(np.zeros(1), np.full((1, 1), mechanism.noise_std**2))
    return ScoredRound.among(score(background, np.array([norm]), mechanism), np.empty((0, 1)))


def _epsilons(rounds: Sequence[ScoredRound | None], delta: float) -> list[tuple[float, float]]:
    """Per prefix the certified bounds; a round without a vote adds nothing."""
    voting = [each for each in rounds if each is not None]
    values = [(0.0, 0.0)] + [law.epsilon(delta) for law in (compose(voting, _POINTS) if voting else ())]
    return [values[int(heard)] for heard in np.cumsum([each is not None for each in rounds])]
