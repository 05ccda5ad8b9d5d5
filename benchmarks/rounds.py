"""Audits over six rounds, N = 8000, a nonce canary: few users vote where it does."""

from __future__ import annotations

import numpy as np

from benchmarks.measurement import Measurement, seconds
from coalmine.auditor.eps_bound import Terms
from coalmine.auditor.moments import Moments
from coalmine.auditor.rounds import monte_carlo, variance_reduced
from coalmine.auditor.rounds.calibration import calibrate
from coalmine.auditor.rounds.composition import compose, exact_epsilons
from coalmine.auditor.rounds.path import ScoredRound
from coalmine.auditor.score import score
from coalmine.protocol.privacy import Mechanism

USERS, VOTING, ROUNDS, TRIALS, REDUCED = 8000, 160, 6, 5_000_000, 500_000
MECHANISM = Mechanism(q=0.1, sigma=1.1088)
ALPHA = 0.01


def measure() -> list[Measurement]:
    """``VOTING`` users vote on the probes in each round; then the worst case, in which everybody does."""
    rng = np.random.default_rng(0)
    by = score(Moments(np.zeros(1), np.full((1, 1), MECHANISM.noise_std**2)), np.array([MECHANISM.clip]), MECHANISM)

    def path(voting: int) -> list[ScoredRound]:
        rounds = []
        for _ in range(ROUNDS):
            projections = np.zeros(USERS)
            projections[rng.choice(USERS, voting, replace=False)] = 0.01 * by.noise_std * rng.random(voting)
            rounds.append(ScoredRound(by, projections, by.signal))
        return rounds

    nonce, crowded = path(VOTING), path(USERS)
    laws = compose(nonce)
    levels = [at.value for at in calibrate(laws, TRIALS, Terms(MECHANISM.delta, ALPHA))]

    def reduced() -> None:
        plans = variance_reduced.plan(
            nonce, laws, trials=REDUCED, delta=MECHANISM.delta, alpha=ALPHA, rng=np.random.default_rng(0)
        )
        thresholds = [each.threshold for each in plans]
        drawn = variance_reduced.draw(nonce, plans[-1].proposals, thresholds, REDUCED, 0)
        for each in drawn:
            variance_reduced.eps_lower(each, MECHANISM.delta, ALPHA)

    some = TRIALS // 20
    return [
        Measurement(
            "5M trials per hypothesis, 6 rounds",
            seconds(lambda: monte_carlo.count(nonce, levels, TRIALS, 0), 1),
            "s",
            "at most 240",
        ),
        Measurement(
            "the same if all 8000 vote on the probes, projected from 5 %",
            20 * seconds(lambda: monte_carlo.count(crowded, levels, some, 0), 1),
            "s",
        ),
        Measurement("exact epsilon of all 6 prefixes", seconds(lambda: exact_epsilons(nonce, MECHANISM.delta)), "s"),
        Measurement(
            "the same if all 8000 vote on the probes", seconds(lambda: exact_epsilons(crowded, MECHANISM.delta)), "s"
        ),
        Measurement("500k weighted trials: plan, draws and bounds of all 6 prefixes", seconds(reduced, 1), "s"),
    ]
