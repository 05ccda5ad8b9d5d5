"""Incremental greedy selection against full re-routing, 512 pool items, 64 picks, 64 records, 8192 candidates."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.measurement import Measurement, seconds
from benchmarks.voting import CANDIDATES, K, _unit
from coalmine.auditor.design import squared_distances
from coalmine.auditor.greedy import select_probes
from coalmine.protocol.route import route

POOL, PICKS, RECORDS, NAIVE_TRIALS = 512, 64, 64, 16


def measure() -> list[Measurement]:
    """The naive form's cost of one trial, times its POOL * PICKS trials (later steps try a few items less)."""
    rng = np.random.default_rng(0)
    bank, pool, canary = _unit(rng, CANDIDATES - PICKS), _unit(rng, POOL), _unit(rng, RECORDS)
    votes = rng.random((500, POOL)) * 0.01
    covariance = 0.18 * votes.T @ votes + 0.01 * np.eye(POOL)
    retained = route(canary, bank, K).distance
    distances = squared_distances(canary, pool)
    norm = seconds(lambda: select_probes(retained, distances, PICKS))
    mu = seconds(lambda: select_probes(retained, distances, PICKS, covariance))
    started = time.perf_counter()
    for item in range(NAIVE_TRIALS):
        route(canary, np.concatenate([bank, pool[: PICKS - 1], pool[item : item + 1]]), K)
    naive = (time.perf_counter() - started) / NAIVE_TRIALS * sum(POOL - step for step in range(PICKS))
    return [
        Measurement("greedy on votes", norm, "s", "at most 0.5"),
        Measurement("greedy on separation", mu, "s", "at most 0.5"),
        Measurement(f"full re-routing, projected from {NAIVE_TRIALS} trials", naive, "s"),
        Measurement("faster than full re-routing", naive / mu, "x"),
    ]
