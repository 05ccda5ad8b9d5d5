"""Variance-reduced Monte-Carlo over rounds: earlier rounds weighted, the last one's noise integrated.

A trial draws the rounds before the last from a proposal under which large sums are common, with the likelihood ratio of
either hypothesis as weight (``proposal``). Given their sum S and the last round's background B, the summed score
exceeds its threshold t exactly when the last round's T exceeds the value x whose ``ell_mix`` is ``t - S``. So

* without the canary a trial's value is ``w0 Phi((B - x) / tau)``, with mean FPR;
* with an eligible one it is ``w1 ((1-q) Phi((B - x) / tau) + q Phi((B + s - x) / tau))``, with mean TPR.

Values are independent over trials and bounded, and their means are bounded by betting (``betting``): nothing else is
assumed. For one round no weight is left and this is the single round's method. Without the weights it would certify
less than counting from the second round on, since a value could be anything up to 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from coalmine.auditor.cohorts import Array, background_sums, in_chunks
from coalmine.auditor.eps_bound import Split, eps_from_bounds
from coalmine.auditor.rounds.composition import SumLaw
from coalmine.auditor.rounds.monte_carlo import check_thresholds
from coalmine.auditor.rounds.path import ScoredRound
from coalmine.auditor.rounds.proposal import BEYOND, DensityFloor, Proposal, density_floors, excess, mixed
from coalmine.auditor.variance_reduced import Probabilities
from coalmine.protocol.errors import StudyError

METHOD = "importance-sampled/betting"
_PILOT = 1 << 13
_PILOT_POINTS = 33


@dataclass(frozen=True)
class Plan:
    """How one prefix is tested, chosen on calibration users.

    Attributes:
        threshold: on the summed ``ell_mix``. proposals: one per round. eps_expected: predicted bound.
    """

    threshold: float
    proposals: tuple[Proposal, ...]
    eps_expected: float


def draw(
    path: Sequence[ScoredRound],
    proposals: Sequence[Proposal],
    thresholds: Sequence[float],
    trials: int,
    seed: int,
    *,
    name: str = "",
    threads: int | None = None,
) -> tuple[Probabilities, ...]:
    """Weighted values after 1, ..., T rounds; the same for any number of threads.

    One set of draws serves all prefixes and both hypotheses: each bound on a mean stands on its own.

    Args:
        path: T >= 1 rounds. proposals: one per round, fixed without these trials.
        thresholds: one per prefix, on the summed ``ell_mix``, fixed without these trials; may be infinite.
        trials: >= 1.
        seed, name: the draws depend on these two alone; give every experiment its own name.
        threads: ``None`` for one per core.

    Raises:
        StudyError: a value out of its range.
    """
    levels = [float(each[0]) for each in check_thresholds(path, thresholds) if len(each) == 1]
    if len(levels) != len(path) or len(proposals) != len(path):
        raise StudyError(
            "thresholds or proposals do not match the rounds", where="rounds", remedy="one of each per prefix"
        )

    known = density_floors(path, proposals, max([0.0, *(level for level in levels if math.isfinite(level))]))

    def work(rng: np.random.Generator, n: int) -> Array:
        states = _states(rng, path, proposals, known, n)
        return np.array([_values(path[t], levels[t], *state) for t, state in enumerate(states)])

    whole = np.concatenate(in_chunks(work, trials, seed, name, threads), axis=2)
    drawn = []
    for t, (level, (present, absent)) in enumerate(zip(levels, whole, strict=True)):
        ranges = _ranges(path[: t + 1], proposals, level, known[t])
        drawn.append(Probabilities(present, absent, *ranges, beyond=2 * BEYOND, method=METHOD))
    return tuple(drawn)


def plan(
    path: Sequence[ScoredRound],
    laws: Sequence[SumLaw],
    *,
    trials: int,
    delta: float,
    alpha: float,
    split: Split = Split.FOUR,
    rng: np.random.Generator,
) -> tuple[Plan, ...]:
    """Per prefix the threshold and the proposals with which ``trials`` trials are expected to certify most.

    A pilot among the calibration users predicts the bound from means and variances of the values (Bernstein's shape: a
    variance term and, for the FPR, a range term). The prediction only chooses; the bound is proved on other trials.

    Args:
        path: rounds among calibration users that stand for N. laws: their prefixes' laws.
        trials, delta, alpha, split: of the test. rng: of the pilot.
    """
    logs = -math.log(split.gamma(alpha))
    grids = [_levels(law, delta) for law in laws]
    best = [Plan(float(grid[0]), (), -1.0) for grid in grids]
    for proposals in (
        tuple(Proposal.likely(each, delta) for each in path),
        tuple(Proposal.eligible(each) for each in path),
    ):
        known = density_floors(path, proposals, max(float(grid[-1]) for grid in grids))
        for t, state in enumerate(_states(rng, path, proposals, known, _PILOT)):
            for level in grids[t].tolist():
                values = _values(path[t], level, *state)
                (tpr, fpr), spread = values.mean(axis=1), np.sqrt(2 * values.var(axis=1) * logs / trials)
                _, (low, high) = _ranges(path[: t + 1], proposals, level, known[t])
                fpr_high, tpr_low = fpr + spread[1] + (high - low) * logs / trials, tpr - spread[0]
                expected = float(eps_from_bounds(tpr_low, fpr_high, 1 - fpr_high, 1 - tpr_low, delta))
                if expected > best[t].eps_expected:
                    best[t] = Plan(level, proposals, expected)
    return tuple(best)


def _levels(law: SumLaw, delta: float) -> Array:
    """Thresholds from the middle of the score's law to where too little of it is left to show anything."""
    tails = np.cumsum(law.present_high[::-1])[::-1]
    start, stop = (int(np.searchsorted(-tails, -tail)) for tail in (0.5, delta))
    points = law.points
    return np.linspace(points[min(start, len(points) - 1)], points[min(stop, len(points) - 1)], _PILOT_POINTS)


_State = tuple[Array, Array, Array, Array]


def _states(
    rng: np.random.Generator,
    path: Sequence[ScoredRound],
    proposals: Sequence[Proposal],
    known: Sequence[DensityFloor],
    n: int,
) -> Iterator[_State]:
    """Per prefix, (n,) each: its last B, the sum before it, and the log-weights with the canary and without it.

    The weights vanish where the backgrounds lie beyond what the bounds on the values assume.
    """
    total, present, absent = np.zeros(n), np.zeros(n), np.zeros(n)
    spent = np.zeros(n)
    for prefix, (each, proposal) in enumerate(zip(path, proposals, strict=True)):
        background = background_sums(rng, each.projections, each.score.q, n)
        outside = (background > known[prefix].top) | (spent > known[prefix].allowance)
        yield background, total, np.where(outside, -np.inf, present), np.where(outside, -np.inf, absent)
        if prefix == len(path) - 1:
            return
        z = proposal.draw(rng, n)
        total = total + each.ell_mix(background + each.score.noise_std * z)
        spent = spent + excess(each, proposal, background, known[prefix + 1].usual[prefix])
        weight = proposal.log_density(z)
        absent = absent - weight
        present = present + mixed(z, each.score.q, each.shift / each.score.noise_std) - weight


def _values(
    each: ScoredRound, threshold: float, background: Array, total: Array, present: Array, absent: Array
) -> Array:
    """(2, n) weighted probabilities that the last round exceeds what is left of the threshold: with canary, without."""
    tau, q = each.score.noise_std, each.score.q
    ahead = (background - each.statistic(threshold - total)) / tau
    with_canary = (1 - q) * ndtr(ahead) + q * ndtr(ahead + each.shift / tau)
    return np.stack([np.exp(present) * with_canary, np.exp(absent) * ndtr(ahead)])


def _ranges(
    prefix: Sequence[ScoredRound], proposals: Sequence[Proposal], threshold: float, known: DensityFloor
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Bounds on the values with the canary and without it; both values grow with B and with the sum before."""
    last, nothing = prefix[-1], np.zeros(len(known.ends))
    chances = _values(last, threshold, nothing + known.top, known.ends, nothing, nothing)
    if len(prefix) == 1 and not last.projections.any():
        (with_canary, without) = chances[:, 0].tolist()
        return (with_canary, with_canary), (without, without)
    weight = math.prod(proposal.most_present(each) for each, proposal in zip(prefix[:-1], proposals, strict=False))
    return (0.0, weight * float(chances[0].max())), (0.0, known.most(chances[1]))
