"""Where variance-reduced trials draw a round from, and what their weights can be at most.

Given the background B, the noise plus canary ``z = (T - B) / tau`` is ``N(0, 1)`` without the canary and
``(1-q) N(0, 1) + q N(mu, 1)`` with an eligible one. Trials draw z from ``(1-q') N(0, 1) + q' N(theta, 1)`` with q' and
theta that make large scores common, and carry the two likelihood ratios as weights: the mean of a weighted value is the
mean under the hypothesis (importance sampling). B is drawn as it is.

A bound on the mean needs a bound on the values. Without the canary the weight falls with every round's ``ell_mix``, so
on the event that the sum is large it is small: how large it can be at most follows by going through all ways to share
the sum among the rounds (dynamic programming on a grid, rounded to the safe side).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coalmine.auditor.background import Array, Background
from coalmine.auditor.ideal import ideal_epsilon
from coalmine.auditor.rounds.path import ScoredRound
from coalmine.protocol.compiled import compiled

BEYOND = 1e-10
"""Probability of backgrounds that a bound on the values leaves out; it is added to the FPR."""
_UNUSUAL = 1e-2
_TILTS = np.geomspace(0.05, 500.0, 33)
_SHARES = 512
_MARGIN = 2.0
_LOWEST = -8.0
"""Where the grid starts if ``ell_mix`` has no least value; what lies below counts as weight without evidence."""


@dataclass(frozen=True)
class Proposal:
    """The law of one round's trials.

    Attributes:
        rate: q', in (0, 1/2]. tilt: theta >= mu.
    """

    rate: float
    tilt: float

    @classmethod
    def eligible(cls, each: ScoredRound) -> Proposal:
        """The round with an eligible canary."""
        return cls(min(each.score.q, 0.5), each.shift / each.score.noise_std)

    @classmethod
    def likely(cls, each: ScoredRound, delta: float) -> Proposal:
        """Aimed at where the best event likely begins (normal approximation)."""
        tau, q = each.score.noise_std, each.score.q
        std = Background.of(each.projections, tau, q).std(0.0)
        separation = each.score.signal / tau / std
        eps = ideal_epsilon(separation, q, delta)
        border = math.log1p(math.expm1(min(eps, 700.0)) / q) / separation + separation / 2
        return cls(0.5, max(each.shift / tau, 0.8 * border / std))

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """(n,) values of z."""
        return rng.standard_normal(n) + self.tilt * (rng.random(n) < self.rate)

    def log_density(self, z: Array) -> Array:
        """Logarithm of the proposal's density over that of ``N(0, 1)``: minus the log-weight without the canary."""
        return mixed(z, self.rate, self.tilt)

    def most_present(self, each: ScoredRound) -> float:
        """Bound on the weight with an eligible canary, ``(1 - q + q e^r) / (1 - q' + q' e^r')``.

        With ``y = e^r'`` and ``a = mu / theta``, ``e^r`` is ``y^a`` times a constant; ``y^a / (1 - q' + q' y)`` has its
        largest value at ``y = a (1-q') / ((1-a) q')``.
        """
        mu, q = each.shift / each.score.noise_std, each.score.q
        a = mu / self.tilt if self.tilt > 0 else 1.0
        if a >= 1:
            peak = 1 / self.rate
        else:
            y = a * (1 - self.rate) / ((1 - a) * self.rate)
            peak = (y**a if y > 0 else 1.0) / (1 - self.rate + self.rate * y)
        return (1 - q) / (1 - self.rate) + q * peak * math.exp(mu * (self.tilt - mu) / 2)


def mixed(z: Array, rate: float, mean: float) -> Array:
    """``log(1 - rate + rate exp(mean z - mean^2 / 2))`` elementwise: a mixture's density over that of ``N(0, 1)``."""
    log_absent = math.log1p(-rate) if rate < 1 else -math.inf
    return np.asarray(np.logaddexp(log_absent, math.log(rate) + mean * z - mean**2 / 2), dtype=np.float64)


def reach(each: ScoredRound, probability: float) -> float:
    """B exceeds it with at most this probability (Chernoff), or never where nobody can take it so far."""
    positive = each.projections[each.projections > 0]
    if each.score.q == 1 or not len(positive):
        return _most(each)
    background = Background.of(each.projections, 1.0, each.score.q)
    cost = -math.log(probability)
    tilts = (_TILTS / np.abs(background.shifts).max()).tolist()
    return float(min(_most(each), *((_cumulant(background, tilt) + cost) / tilt for tilt in tilts)))


def _most(each: ScoredRound) -> float:
    """No B exceeds it: rounding of a sum in another order is allowed for."""
    taken = each.projections if each.score.q == 1 else np.maximum(each.projections, 0.0)
    return float(taken.sum()) + 1e-9 * float(np.abs(each.projections).sum())


def _cumulant(background: Background, tilt: float) -> float:
    """``log E exp(tilt B)``, in the unit of the projections."""
    return background.cumulant(tilt) - tilt**2 / 2


@dataclass(frozen=True)
class DensityFloor:
    """The least log-density that a given sum of ``ell_mix`` goes with, after some rounds.

    Attributes:
        least: (n,) lower bound on the sum of ``Proposal.log_density`` where the sum of ``ell_mix`` lies in cell j; the
            last cell has no upper end.
        ends: (n,) upper ends of the cells.
        usual: per round the B up to which ``least`` needs no allowance.
        allowance: what it allows for all ``theta (B - usual)+ / tau`` together; they exceed it with probability at most
            BEYOND.
        top: the next round's B exceeds it with probability at most BEYOND.
    """

    least: Array
    ends: Array
    usual: tuple[float, ...]
    allowance: float
    top: float

    def most(self, chance: Array) -> float:
        """Bound on the weight without the canary times a chance, given (n,) bounds on the chance in each cell."""
        return float(np.max(np.exp(self.allowance - self.least) * chance)) * (1 + 1e-9)


def density_floors(
    path: Sequence[ScoredRound], proposals: Sequence[Proposal], largest: float
) -> tuple[DensityFloor, ...]:
    """What is known after 0, ..., T - 1 rounds.

    A round's log-density grows by at most ``theta / tau`` per unit of B, so it is bounded at a usual B, and the excess
    over it, rarely there in more than one round, is bounded for all rounds together.

    Args:
        largest: the grid resolves sums up to a little above it.
    """
    starts = [each.least if each.least > -math.inf else _LOWEST for each in path]
    usual = tuple(reach(each, _UNUSUAL) for each in path)
    width = max(largest - sum(starts) + _MARGIN, _MARGIN) / (_SHARES - 1)
    least = np.full(_SHARES, np.inf)
    least[0] = 0.0
    tops = [reach(each, BEYOND) for each in path]
    known = [DensityFloor(least[:1], np.zeros(1), (), 0.0, tops[0])]
    for rounds, (each, proposal) in enumerate(zip(path[:-1], proposals[:-1], strict=True), 1):
        left: Array = starts[rounds - 1] + width * np.arange(_SHARES, dtype=np.float64)
        z = (each.statistic(left) - usual[rounds - 1]) / each.score.noise_std
        z[0] = -math.inf
        least = _shared(least, proposal.log_density(z))
        ends: Array = sum(starts[:rounds]) + width * (np.arange(_SHARES, dtype=np.float64) + rounds)
        ends[-1] = math.inf
        allowance = _allowance(path[:rounds], proposals, usual)
        known.append(DensityFloor(least, ends, usual[:rounds], allowance, tops[rounds]))
    return tuple(known)


@compiled()
def _shared(before: Array, own: Array) -> Array:
    """The least total over all ways to share a sum of cells between the rounds before and this one."""
    cells = len(own)
    least = np.full(cells, np.inf)
    for i in range(cells):
        for j in range(cells):
            place = min(i + j, cells - 1)
            least[place] = min(least[place], before[i] + own[j])
    return least


def excess(each: ScoredRound, proposal: Proposal, background: Array, usual: float) -> Array:
    """``theta (B - usual)+ / tau`` of (n,) values of B."""
    return proposal.tilt / each.score.noise_std * np.maximum(background - usual, 0.0)


def _allowance(path: Sequence[ScoredRound], proposals: Sequence[Proposal], usual: Sequence[float]) -> float:
    """The sum of the rounds' excesses X is larger with probability at most BEYOND.

    Chernoff with ``E exp(s X) <= 1 + E exp(s theta (B - usual) / tau)``.
    """
    rounds = [
        (Background.of(each.projections, 1.0, each.score.q), proposal.tilt / each.score.noise_std, at)
        for each, proposal, at in zip(path, proposals, usual, strict=False)
        if at < _most(each)
    ]
    if not rounds:
        return 0.0
    steepest = max(slope * float(np.abs(background.shifts).max()) for background, slope, _ in rounds)

    def bound(tilt: float) -> float:
        moments = [
            np.logaddexp(0.0, _cumulant(background, tilt * slope) - tilt * slope * at)
            for background, slope, at in rounds
        ]
        return (math.fsum(moments) - math.log(BEYOND)) / tilt

    return min(map(bound, (_TILTS / steepest).tolist()))
