"""Where the distance between the promised epsilon and the certified one goes, step by step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coalmine.auditor.background import Array
from coalmine.auditor.exact import ExactEpsilon, exact_epsilon
from coalmine.auditor.ideal import ideal_epsilon
from coalmine.auditor.moments import Moments, moments
from coalmine.auditor.score import Score, score
from coalmine.protocol.privacy import Assurance, Mechanism


@dataclass(frozen=True)
class Step:
    """What is left of epsilon after one more restriction of the attacker.

    Attributes:
        eps: >= 0. A step may lie above the one before it.
        explanation: one sentence for a reader.
        assurance: exact for all steps but the last.
        error: certified numerical error of an exact ``eps``, ``None`` for the sampled one.
    """

    name: str
    eps: float
    explanation: str
    assurance: Assurance
    error: float | None = None


@dataclass(frozen=True)
class Waterfall:
    """From the mechanism's ceiling down to what finite trials certify."""

    steps: tuple[Step, ...]


def waterfall(
    mechanism: Mechanism,
    canary_norm: float,
    canary_vote: Array,
    test_votes: Array,
    auxiliary: Moments,
    certified_eps: float,
) -> Waterfall:
    """The six steps for one canary on one set of coordinates.

    Args:
        canary_norm: L2 norm of the canary's clipped vote on the whole bank, at most C.
        canary_vote: (r,) float64, the same vote on the audited coordinates.
        test_votes: (N, r) float64, clipped votes of the true test users there.
        auxiliary: moments estimated from auxiliary users; the audit's own design.
        certified_eps: the Monte-Carlo bound of that design.

    Raises:
        DataError: shapes differ or a value is not finite.
    """
    audited_norm = float(np.linalg.norm(canary_vote))
    informed = score(moments(test_votes, len(test_votes), mechanism), canary_vote, mechanism)
    designed = score(auxiliary, canary_vote, mechanism)
    exact = (
        ("ceiling", _alone(mechanism.clip, mechanism), "A vote of full length C that nobody else disturbs."),
        ("clipping slack", _alone(canary_norm, mechanism), "The canary's clipped vote may be shorter than C."),
        (
            "votes that miss the coordinates",
            _alone(audited_norm, mechanism),
            "Part of the canary's vote falls on coordinates that are not audited.",
        ),
        (
            "other users' traffic",
            _among(test_votes, canary_vote, informed, mechanism),
            "Other users vote on the audited coordinates too; their true moments are known here.",
        ),
        (
            "estimated design",
            _among(test_votes, canary_vote, designed, mechanism),
            "The score is designed on auxiliary users instead.",
        ),
    )
    steps = [Step(name, eps.lower, why, Assurance.EXACT, eps.error) for name, eps, why in exact]
    steps.append(
        Step("finite trials", certified_eps, "What finitely many trials certify with confidence.", Assurance.FORMAL)
    )
    return Waterfall(tuple(steps))


def _alone(norm: float, mechanism: Mechanism) -> ExactEpsilon:
    """Without other users the exact epsilon has a closed form."""
    eps = ideal_epsilon(norm / mechanism.noise_std, mechanism.q, mechanism.delta)
    return ExactEpsilon(eps, eps)


def _among(votes: Array, canary_vote: Array, by: Score, mechanism: Mechanism) -> ExactEpsilon:
    return exact_epsilon(
        by.project(votes), float(by.direction @ canary_vote), by.noise_std, mechanism.q, mechanism.delta
    )
