"""T = sum of d_i over train, a random subset of fixed size: the permutation law, and its eps-DP worst case.

Under zero learning all subsets of the size are equally likely given the synthetic output. Under eps-DP for exchanging
one user, the weights of two subsets that differ in one exchange lie within e^eps. Summing over all exchanges of user i
bounds its odds, given what became of the users before it, by e^eps times the odds of drawing it blindly from what is
left. The largest P[T >= t] over all mechanisms within these bounds follows backwards, one user at a time.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, hypergeom

from coalmine.auditor.disclosure.assignment import Assignment
from coalmine.auditor.disclosure.weighted_sum import Weights, log_chernoff, log_upper_tail

Array = NDArray[np.float64]

EXACT_WORK = 1e8
"""Steps up to which the recursions below are run; beyond it a bound takes their place."""


def exact(d: Weights, assignment: Assignment) -> bool:
    """Whether the tails below are computed, not bounded."""
    return d.users**2 * (d.total + 1) <= EXACT_WORK


def log_upper_tail_zero(d: Weights, threshold: int, assignment: Assignment) -> float:
    """``log P[T >= threshold]`` when the subset is drawn blindly; beyond ``EXACT_WORK`` the Chernoff bound for coins.

    Membership in a random subset is negatively associated (Joag-Dev and Proschan 1983), so its moment generating
    function lies below that of independent coins of rate n_train / n.
    """
    least = d.steps(threshold)
    if least <= 0:
        return 0.0
    if least > d.total:
        return -math.inf
    if not exact(d, assignment):
        return log_chernoff(d, threshold, math.log(assignment.train) - math.log(assignment.users - assignment.train))
    p = assignment.train / assignment.users
    joint = np.ones((1, 1))
    for value, count in zip(d.values, d.counts, strict=True):
        rows, columns = joint.shape
        grown = np.zeros((rows + count, columns + count * value))
        for taken, mass in enumerate(binom.pmf(np.arange(count + 1), count, p)):
            grown[taken : taken + rows, taken * value : taken * value + columns] += mass * joint
        joint = grown
    others = binom.pmf(assignment.train - np.arange(d.users + 1), assignment.users - d.users, p)
    mass = float(others @ joint[:, least:].sum(axis=1)) / float(binom.pmf(assignment.train, assignment.users, p))
    return min(0.0, math.log(mass)) if mass > 0 else -math.inf


def log_upper_tail_eps(d: Weights, threshold: int, assignment: Assignment, eps: float) -> float:
    """The largest ``log P[T >= threshold]`` that eps-DP for exchanging one user allows.

    Beyond ``EXACT_WORK``: each of the u holders of a match is in train with odds of at most e^eps n_train / (n_holdout
    - u + 1), whatever became of the others; T then lies below a sum of independent coins.
    """
    least = d.steps(threshold)
    if least <= 0:
        return 0.0
    if least > d.total:
        return -math.inf
    if not exact(d, assignment):
        room = assignment.users - assignment.train - d.users + 1
        return log_upper_tail(d, threshold, eps + math.log(assignment.train / room)) if room > 0 else 0.0
    steps = np.repeat(d.values, d.counts)[::-1]
    value = np.zeros((d.users + 1, least + 1))
    value[:, least] = 1.0
    reached = np.arange(least + 1)
    for before in range(d.users - 1, -1, -1):
        taken = value[1 : before + 2][:, np.minimum(reached + steps[before], least)]
        left = value[: before + 1]
        low, high = _odds_bounds(assignment, before, eps)
        value = np.maximum(low * taken + (1 - low) * left, high * taken + (1 - high) * left)
    mass = float(value[0, 0])
    return min(0.0, math.log(mass)) if mass > 0 else -math.inf


def _odds_bounds(assignment: Assignment, before: int, eps: float) -> tuple[Array, Array]:
    """(before + 1, 1) least and largest probability of the next user, by how many of those before were taken."""
    inside = np.maximum(assignment.train - np.arange(before + 1.0), 0.0)[:, None]
    outside = np.maximum(assignment.users - before - inside, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        high = np.where(inside == 0, 0.0, inside / (inside + outside * math.exp(-eps)))
        low = np.where(inside == 0, 0.0, inside / (inside + outside * math.exp(eps)))
    return low, high


def log_count_tail(r: int, w: int, assignment: Assignment, eps: float) -> float:
    """The same for equal weights: at least ``w`` of ``r`` given users are in train. Then including is always worst."""
    if w <= 0:
        return 0.0
    if eps == 0:
        return float(hypergeom.logsf(w - 1, assignment.users, assignment.train, r))
    value = np.zeros(r + 2)
    value[w:] = 1.0
    for before in range(r - 1, -1, -1):
        high = _odds_bounds(assignment, before, eps)[1][:, 0]
        value[: before + 1] = high * value[1 : before + 2] + (1 - high) * value[: before + 1]
    return min(0.0, math.log(value[0])) if value[0] > 0 else -math.inf
