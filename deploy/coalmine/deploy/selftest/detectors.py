"""Every test of the plan, applied to the releases of one repetition. A test answers with alarm or none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor import two_sided
from coalmine.auditor.calibration import calibrate
from coalmine.auditor.eps_bound import Split, Terms, eps_lower
from coalmine.auditor.moments import moments
from coalmine.auditor.score import score
from coalmine.deploy.selftest.plan import Plan
from coalmine.deploy.selftest.world import Cast, World
from coalmine.protocol.privacy import Mechanism

Array = NDArray[np.float64]

FACTORS = (0.8, 1.05, 1.3)
"""Thresholds of the release tests, in units of the best one for the correct mechanism. A bug may move it."""
_KS_VALUES = 40_000
_MATCH = 1e-6


@dataclass(frozen=True)
class Claims:
    """What is promised (pessimistic PLD, user level, add/remove) for one release and for two."""

    one: float
    two: float


@dataclass(frozen=True)
class Detector:
    """The tests, with all thresholds fixed.

    Attributes:
        thresholds: by kind of canary, on the score in units of the noise.
    """

    plan: Plan
    world: World
    claims: Claims
    thresholds: dict[str, tuple[float, ...]]

    def alarms(self, released: Array, public: Array) -> dict[str, bool]:
        """Which tests raise an alarm.

        Args:
            released: (rounds, p) histograms in the order of the rounds, the first round even. public: (rounds, p) noise
                that the public seed gives for the same rounds.
        """
        plan, mechanism = self.plan, self.plan.mechanism
        inserted, phantoms, std = self.world.inserted, self.world.phantoms, mechanism.noise_std
        present = {kind: _scores(released, cast, std) for kind, cast in inserted.items()}
        absent = {kind: _scores(released, cast, std) for kind, cast in phantoms.items()}
        signal = {kind: _signal(cast, std) for kind, cast in inserted.items()}
        answers: dict[str, bool] = {}
        for kind, name in (("focused", "release"), ("spread", "spread")):
            answers[f"bound/{name}"] = any(
                self._exceeds(present[kind] > level, absent[kind] > level, self.claims.one, len(FACTORS))
                for level in self.thresholds[kind]
            )
        half = signal["focused"] / 2
        pairs = [np.abs(scores[::2] - scores[1::2]) > half for scores in (present["focused"], absent["focused"])]
        answers["bound/difference"] = self._exceeds(pairs[0], pairs[1], self.claims.two)
        known = [_scores(released - public, cast["focused"], std) > half for cast in (inserted, phantoms)]
        answers["bound/public seed"] = self._exceeds(known[0], known[1], self.claims.one)
        shown = [_matches(released, cast["focused"], mechanism) for cast in (inserted, phantoms)]
        answers["bound/match"] = self._exceeds(shown[0], shown[1], self.claims.one)
        silent = np.concatenate([cast.probes.ravel() for cast in phantoms.values()])
        noise = released[:, silent]
        p_values = {
            "noise/variance": two_sided.variance_p_value(noise, std),
            "noise/mean": two_sided.mean_p_value(noise, std),
            "noise/normality": two_sided.normality_p_value(noise.ravel()[::2][:_KS_VALUES], std),
            "noise/correlation": two_sided.correlation_p_value(noise, std),
        }
        for kind, scores in present.items():
            p_values[f"means/{kind}"] = two_sided.canary_mean_p_value(scores, signal[kind], mechanism.q)
        answers |= {name: value < plan.level for name, value in p_values.items()}
        passed_off, others = absent["focused"][:, ::2], absent["focused"][:, 1::2]
        answers["phantom/bound"] = any(
            self._exceeds(passed_off > level, others > level, 0.0, len(FACTORS)) for level in self.thresholds["focused"]
        )
        return answers

    def _exceeds(self, present: NDArray[np.bool_], absent: NDArray[np.bool_], claim: float, of: int = 1) -> bool:
        """Does the bound from these answers contradict the claim, at one ``of`` several shares of the level?"""
        bound = eps_lower(
            int(present.sum()),
            int(absent.sum()),
            present.size,
            absent.size,
            self.plan.mechanism.delta,
            self.plan.level / of,
            Split.TWO,
        )
        return bound.eps_lower > claim


def build_detector(plan: Plan, world: World, claims: Claims) -> Detector:
    """Fix every threshold from the claimed mechanism; nobody else's votes reach the probes."""
    thresholds = {}
    for kind, cast in world.inserted.items():
        vote = cast.votes[0, cast.probes[0]]
        nobody = np.zeros((1, len(vote)))
        by = score(moments(nobody, plan.layout.users, plan.mechanism), vote, plan.mechanism)
        terms = Terms(plan.mechanism.delta, plan.level / len(FACTORS), Split.TWO)
        best = calibrate(by, nobody, plan.layout.users, plan.layout.rounds * len(cast.votes), terms)
        thresholds[kind] = tuple(factor * best.value / by.noise_std for factor in FACTORS)
    return Detector(plan, world, claims, thresholds)


def _scores(released: Array, cast: Cast, std: float) -> Array:
    """(rounds, n) likelihood-ratio scores in units of their noise: the release along every canary's vote."""
    norms = np.linalg.norm(cast.votes, axis=1)
    return np.asarray(released @ (cast.votes / (norms[:, None] * std)).T, np.float64)


def _signal(cast: Cast, std: float) -> float:
    """What a participating canary adds to its score; alike for all of a kind."""
    return float(np.linalg.norm(cast.votes[0])) / std


def _matches(released: Array, cast: Cast, mechanism: Mechanism) -> NDArray[np.bool_]:
    """(rounds, n) whether one probe, another one every round, shows exactly the canary's vote."""
    rounds = np.arange(len(released))
    probe = cast.probes[:, rounds % cast.probes.shape[1]].T
    vote = cast.votes[np.arange(len(cast.votes)), probe]
    return np.asarray(np.abs(released[rounds[:, None], probe] - vote) < _MATCH * mechanism.clip, bool)
