"""The exact audit against a million Monte-Carlo trials."""

from __future__ import annotations

import numpy as np

from benchmarks.measurement import Measurement, seconds
from coalmine.auditor import monte_carlo
from coalmine.auditor.exact import exact_epsilon

Q, DELTA, TAU, SIGNAL = 0.1, 1e-5, 1.0, 0.8


def measure() -> list[Measurement]:
    """All projections distinct, the worst case."""
    rng = np.random.default_rng(0)
    some, many = rng.normal(0, 0.05, 1000), rng.normal(0, 0.05, 8000)
    exact = seconds(lambda: exact_epsilon(some, SIGNAL, TAU, Q, DELTA), 5)
    sampled = seconds(lambda: monte_carlo.count(some, SIGNAL, TAU, Q, [1.0], 1_000_000, 0), 2)
    return [
        Measurement("exact epsilon, N = 1000", 1000 * exact, "ms", "at most 50"),
        Measurement(
            "exact epsilon, N = 8000", 1000 * seconds(lambda: exact_epsilon(many, SIGNAL, TAU, Q, DELTA)), "ms"
        ),
        Measurement("faster than 1M Monte-Carlo trials", sampled / exact, "x"),
    ]
