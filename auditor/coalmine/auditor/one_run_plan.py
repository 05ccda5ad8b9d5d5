"""How many canaries and probes a one-run audit needs for a target bound.

The model is the best case: canaries whose clipped votes have norm C, alone with their probes. With fewer than k probes
of its own a canary's record spends the other votes elsewhere, and its signal shrinks to ``sqrt(probes / k)``. A plan is
an estimate; what it plans for is a formal bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from coalmine.auditor.one_run import Guesses, steinke_eps_lower, steinke_p_value
from coalmine.protocol.errors import StudyError
from coalmine.protocol.privacy import Mechanism

Array = NDArray[np.float64]

_DRAWS = 200_000
_FRACTIONS = tuple(float(f) for f in np.geomspace(0.002, 0.5, 24))
_GROWTH = 1.12
_SMALLEST = 8


@dataclass(frozen=True)
class OneRunPlan:
    """A plan.

    Attributes:
        canaries, probes: m and the probes of all of them together. say_in, say_out: guesses to fix beforehand.
        accuracy: expected share of right guesses.
        eps: Steinke's bound (formal, at delta) that is reached with probability ``power`` in the model.
        reached: whether ``eps`` is at least the target; if not, this is the best plan within the limit.
    """

    canaries: int
    probes: int
    say_in: int
    say_out: int
    accuracy: float
    eps: float
    power: float
    reached: bool


def plan(
    mechanism: Mechanism,
    rounds: int,
    target: float,
    level: float,
    rng: np.random.Generator,
    *,
    probes_each: int = 5,
    power: float = 0.8,
    limit: int = 100_000,
) -> OneRunPlan:
    """The fewest canaries with which the bound reaches ``target``, to 12 %.

    Args:
        mechanism: q, sigma, delta and k count. rounds: releases on one bank. target: epsilon > 0.
        level: of the bound. probes_each: of one canary. power: probability of reaching the target. limit: of canaries.

    Raises:
        StudyError: a value out of its range.
    """
    for where, holds, needs in (
        ("target", target > 0, "an epsilon > 0"),
        ("power", 0 < power < 1, "a probability in (0, 1)"),
        ("level", 0 < level < 1, "a significance level in (0, 1)"),
        ("rounds", rounds >= 1, "at least one release"),
        ("probes_each", probes_each >= 1, "at least one probe a canary"),
        ("limit", limit >= _SMALLEST, f"at least {_SMALLEST} canaries"),
    ):
        if not holds:
            raise StudyError("the value is not allowed", where=where, remedy=f"needs {needs}")
    chances = _chances(mechanism, rounds, probes_each, rng)
    for canaries in _sizes(limit):
        for seen, say_in, say_out, accuracy in _options(canaries, chances, power):
            if steinke_p_value(seen, target, mechanism.delta) < level:
                eps = steinke_eps_lower(seen, mechanism.delta, level)
                return OneRunPlan(canaries, canaries * probes_each, say_in, say_out, accuracy, eps, power, True)
    best = OneRunPlan(limit, limit * probes_each, 1, 0, 0.5, 0.0, power, False)
    for canaries in list(_sizes(limit))[::4]:
        for seen, say_in, say_out, accuracy in _options(canaries, chances, power):
            if best.eps == 0 or steinke_p_value(seen, best.eps, mechanism.delta) < level:
                eps = steinke_eps_lower(seen, mechanism.delta, level)
                if eps > best.eps:
                    probes = canaries * probes_each
                    best = OneRunPlan(canaries, probes, say_in, say_out, accuracy, eps, power, False)
    return best


def model_scores(
    mechanism: Mechanism, rounds: int, probes_each: int, included: NDArray[np.bool_], rng: np.random.Generator
) -> Array:
    """Scores of canaries that are alone with their probes: (m,) for (m,) inclusions."""
    q, mu = mechanism.q, math.sqrt(min(1.0, probes_each / mechanism.votes_per_record)) / mechanism.sigma
    scores = np.zeros(len(included))
    log_absent = math.log1p(-q) if q < 1 else -math.inf
    for _ in range(rounds):
        seen = rng.standard_normal(len(included)) + mu * (included & (rng.random(len(included)) < q))
        scores += np.logaddexp(log_absent, math.log(q) + mu * seen - mu**2 / 2)
    return scores


def _chances(
    mechanism: Mechanism, rounds: int, probes_each: int, rng: np.random.Generator
) -> list[tuple[float, float, float]]:
    """For each share of canaries guessed on one side: the chance that "in" is right, and that "out" is."""
    included = np.arange(_DRAWS) % 2 == 0
    truth = included[np.argsort(-model_scores(mechanism, rounds, probes_each, included, rng), kind="stable")]
    top, bottom = np.cumsum(truth), np.cumsum(~truth[::-1])
    sizes = [max(1, round(fraction * _DRAWS)) for fraction in _FRACTIONS]
    return [
        (fraction, float(top[size - 1]) / size, float(bottom[size - 1]) / size)
        for fraction, size in zip(_FRACTIONS, sizes, strict=True)
    ]


def _options(
    canaries: int, chances: list[tuple[float, float, float]], power: float
) -> Iterator[tuple[Guesses, int, int, float]]:
    """Guesses on one side or on both, with as many right as happen with probability ``power``."""
    for fraction, right_in, right_out in chances:
        side = round(fraction * canaries)
        for say_in, say_out in ((side, 0), (side, min(side, canaries - side))):
            total = say_in + say_out
            if side:
                accuracy = (say_in * right_in + say_out * right_out) / total
                correct = int(binom.ppf(1 - power, total, accuracy))
                yield Guesses(canaries, total, correct), say_in, say_out, accuracy


def _sizes(limit: int) -> Iterator[int]:
    size = float(_SMALLEST)
    while size < limit:
        yield int(size)
        size = max(size * _GROWTH, size + 1)
    yield limit
