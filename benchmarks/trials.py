"""Projected Monte-Carlo against the naive loop over 64-dimensional vectors, N = 1000, q = 0.1."""

from __future__ import annotations

import numpy as np

from benchmarks.measurement import Measurement, seconds
from coalmine.auditor import monte_carlo, variance_reduced

USERS, PROBES, TRIALS, NAIVE_TRIALS, Q = 1000, 64, 1_000_000, 5_000, 0.1


def measure() -> list[Measurement]:
    """The naive loop is measured on a part and projected."""
    rng = np.random.default_rng(0)
    votes = rng.random((USERS, PROBES)) * 0.02
    direction = rng.normal(size=PROBES)
    projections = votes @ direction

    def naive() -> None:
        for _ in range(NAIVE_TRIALS):
            cohort = rng.random(USERS) < Q
            (votes[cohort].sum(axis=0) + rng.normal(0, 0.1, PROBES)) @ direction

    tau = 0.1 * float(np.linalg.norm(direction))
    fast = seconds(lambda: monte_carlo.count(projections, 0.5, tau, Q, [1.0], TRIALS, 0))
    slow = seconds(naive, 1) * TRIALS / NAIVE_TRIALS

    def reduced() -> None:
        drawn = variance_reduced.draw(projections, 0.5, tau, Q, 1.0, TRIALS, 0)
        variance_reduced.eps_lower(drawn, 1e-5, 0.01)

    return [
        Measurement("1M trials per hypothesis", fast, "s", "at most 1.5"),
        Measurement(f"naive loop, projected from {NAIVE_TRIALS} trials", slow, "s"),
        Measurement("faster than the naive loop", slow / fast, "x"),
        Measurement("1M variance-reduced trials with their bounds", seconds(reduced), "s"),
    ]
