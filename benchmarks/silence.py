"""What each reading of a membership audit gives on average when nothing leaks: scores of both sides from one law.

No speed is measured. The table in docs/filtering.md comes from here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.measurement import Measurement
from coalmine.auditor.membership.conventions import null_means
from coalmine.auditor.membership.low_rates import tpr_at
from coalmine.auditor.membership.onion import onion
from coalmine.auditor.membership.scores import calibrated
from coalmine.auditor.membership.single_run import gaussian
from coalmine.auditor.one_run import Guesses, gdp_eps_lower

DELTA, ALPHA = 1e-5, 0.05
_REPETITIONS = 100


def measure() -> list[Measurement]:
    rng, found = np.random.default_rng(0), []
    for models in (60, 200):
        for name, mean in null_means(models, _REPETITIONS, DELTA, ALPHA, rng).items():
            found.append(Measurement(f"{name}, {models} models a side", mean, "mean ε"))
    found.append(Measurement("onion of 200 samples, 60 models a side", _mean(10, lambda: _onion(rng)), "mean ε"))
    found.append(Measurement("one_run/gdp, 60 guesses of 200", _mean(30, lambda: _one_run(rng)), "mean ε"))
    found.append(Measurement("one_run/gaussian, 200 canaries", _mean(_REPETITIONS, lambda: _gaussian(rng)), "mean ε"))
    for rate in (0.001, 0.01):
        mean = _mean(_REPETITIONS, lambda rate=rate: _labels(rng, rate))  # type: ignore[misc]
        found.append(Measurement(f"label-only TPR at {100 * rate:g} % FPR, 100 in 40 models", 100 * mean, "mean %"))
    return found


def _mean(repetitions: int, draw: Callable[[], float]) -> float:
    return float(np.mean([draw() for _ in range(repetitions)]))


def _onion(rng: np.random.Generator) -> float:
    return onion(rng.random((60, 200)), rng.random((60, 200)), DELTA, ALPHA, rng).strongest.eps_lower


def _one_run(rng: np.random.Generator) -> float:
    return gdp_eps_lower(Guesses(200, 60, int(rng.binomial(60, 0.5))), DELTA, ALPHA)


def _gaussian(rng: np.random.Generator) -> float:
    return gaussian(rng.standard_normal(200), rng.random(200) < 0.5, DELTA).eps_lower


def _labels(rng: np.random.Generator, rate: float) -> float:
    """18 views, whose labels agree more or less with a canary's label, whether a model held it or not."""
    held = rng.random((40, 100)) < 0.5
    score = calibrated(rng.binomial(18, rng.beta(0.3, 2, 100), (40, 100)) / 18, held)
    return tpr_at(score[held], score[~held], rate, ALPHA).tpr


if __name__ == "__main__":
    for one in measure():
        print(f"| {one.name} | {one.value:.3g} | {one.unit} |", flush=True)
