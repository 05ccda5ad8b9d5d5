"""The user-match test (arXiv 2606.16952, Algorithm 1): membership guesses from scores, and how many were right.

``r`` users are guessed to be in train, ``w`` of them are. Under eps-DP, w lies below a binomial of rate q = p / (p +
(1-p) e^-eps), so reject when P[Bin(r, q) >= w] <= alpha. The paper rejects at the (1 - alpha)-quantile itself, which is
off by one: r = 20, p = 1/2, alpha = 0.05 would reject at w = 14, an event of probability 0.058.

Who is guessed must not depend on who was in train: the number of guesses is declared, or chosen on users that the test
then leaves out, or several numbers are tried and Bonferroni pays for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import logit
from scipy.stats import binom

from coalmine.auditor import clopper_pearson, one_run
from coalmine.auditor.disclosure.assignment import Assignment, AssignmentKind
from coalmine.auditor.disclosure.feature_match import EPS_LIMIT
from coalmine.auditor.disclosure.fixed_size import log_count_tail
from coalmine.protocol.errors import StudyError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Rule(StrEnum):
    """How the number of guesses was found: fixed beforehand, on a split, or as the best of a grid."""

    DECLARED = "declared"
    SPLIT = "split"
    GRID = "grid"


@dataclass(frozen=True)
class UserMatch:
    """One user-match test.

    Attributes:
        users: who could be guessed. guesses: r. correct: w.
        p_value: of zero learning, multiplied by ``tries``.
        eps_lower: holds with confidence 1 - alpha, at ``delta``.
        tries: numbers of guesses that were tried on the same users.
    """

    rule: Rule
    users: int
    guesses: int
    correct: int
    p_value: float
    eps_lower: float
    delta: float = 0.0
    tries: int = 1


def by_mask(
    guessed: Mask, train: Mask, assignment: Assignment, alpha: float, delta: float = 0.0, rule: Rule = Rule.DECLARED
) -> UserMatch | None:
    """The test for given guesses, which must not depend on ``train``; ``None`` without any guess.

    Args:
        guessed, train: (n,).

    Raises:
        StudyError: a value out of its range; delta > 0 where no formula is known (see :func:`eps_lower`).
    """
    r, w = int(guessed.sum()), int((guessed & train).sum())
    if r == 0:
        return None
    return UserMatch(
        rule,
        len(guessed),
        r,
        w,
        p_value(r, w, assignment),
        eps_lower(r, w, assignment, alpha, delta),
        delta,
    )


def by_count(
    scores: Array,
    r: int,
    train: Mask,
    assignment: Assignment,
    alpha: float,
    generator: np.random.Generator,
    delta: float = 0.0,
) -> UserMatch | None:
    """The ``r`` users with the largest scores are guessed; who of a tie is left out is drawn."""
    return by_mask(largest(scores, r, generator), train, assignment, alpha, delta)


def by_split(
    scores: Array, train: Mask, assignment: Assignment, alpha: float, generator: np.random.Generator
) -> UserMatch | None:
    """Half of the users choose the threshold with the largest bound; the other half is tested at it."""
    chooses = np.zeros(len(scores), bool)
    chooses[generator.permutation(len(scores))[: len(scores) // 2]] = True
    threshold = _best_threshold(scores[chooses], train[chooses], assignment.p, alpha)
    rest = ~chooses
    guessed = np.asarray(scores[rest] >= threshold)
    return by_mask(guessed, train[rest], assignment.given(train, chooses), alpha, rule=Rule.SPLIT)


def by_grid(
    scores: Array,
    counts: Sequence[int],
    train: Mask,
    assignment: Assignment,
    alpha: float,
    generator: np.random.Generator,
) -> UserMatch | None:
    """Several numbers of guesses, fixed beforehand; the best one counts at alpha divided by how many there are."""
    grid = sorted({count for count in counts if 1 <= count <= len(scores)})
    found = [by_count(scores, r, train, assignment, alpha / len(grid), generator) for r in grid]
    tested = [one for one in found if one is not None]
    if not tested:
        return None
    best = min(tested, key=lambda one: (one.p_value, -one.eps_lower))
    p = min(1.0, len(grid) * best.p_value)
    return UserMatch(Rule.GRID, best.users, best.guesses, best.correct, p, best.eps_lower, tries=len(grid))


def largest(scores: Array, r: int, generator: np.random.Generator) -> Mask:
    """(n,) the ``r`` users with the largest scores, ties at the border drawn. NaN is never guessed."""
    order = np.lexsort((generator.random(len(scores)), -scores))
    order = order[~np.isnan(scores[order])][: max(0, r)]
    guessed = np.zeros(len(scores), bool)
    guessed[order] = True
    return guessed


def p_value(r: int, w: int, assignment: Assignment, eps: float = 0.0) -> float:
    """The largest probability that eps-DP allows for at least ``w`` right guesses of ``r``."""
    _check(r, w)
    if assignment.kind is AssignmentKind.FIXED_SIZE:
        return math.exp(log_count_tail(r, w, assignment, eps))
    odds = math.exp(-assignment.log_odds - eps)
    return float(binom.sf(w - 1, r, 1 / (1 + odds)))


def eps_lower(r: int, w: int, assignment: Assignment, alpha: float, delta: float = 0.0) -> float:
    """The largest epsilon that is still rejected at ``alpha``; 0 if none is.

    With delta > 0 the test of Steinke, Nasr and Jagielski (2023) with every user a canary, known for independent coins
    of rate 1/2 only.

    Raises:
        StudyError: a value out of its range; delta > 0 for another assignment.
    """
    _check(r, w)
    if not 0 < alpha < 1:
        raise StudyError(f"{alpha!r} is not allowed", where="alpha", remedy="needs a level in (0, 1)")
    if delta > 0 and assignment.kind is AssignmentKind.FIXED_SIZE:
        raise StudyError("no delta term is known for a fixed-size assignment", where="delta", remedy="set delta to 0")
    if delta > 0:
        return one_run.steinke_eps_lower(one_run.Guesses(assignment.users, r, w, assignment.p), delta, alpha)
    if assignment.kind is not AssignmentKind.FIXED_SIZE:
        rate = float(clopper_pearson.lower(w, r, alpha))
        return max(0.0, float(logit(rate)) - assignment.log_odds) if rate > 0 else 0.0

    def above(eps: float) -> float:
        return max(log_count_tail(r, w, assignment, eps), -1e4) - math.log(alpha)

    if above(0.0) >= 0:
        return 0.0
    high = 1.0
    while above(high) < 0:
        if high >= EPS_LIMIT:
            return EPS_LIMIT
        high *= 2
    return float(brentq(above, 0.0, high, xtol=1e-12))


def _best_threshold(scores: Array, train: Mask, p: float, alpha: float) -> float:
    """The score from which guessing bounds epsilon best on these users; infinite where there is no score."""
    known = ~np.isnan(scores)
    values, where = np.unique(scores[known], return_inverse=True)
    if not len(values):
        return math.inf
    guesses = np.bincount(where, minlength=len(values))[::-1].cumsum()
    correct = np.bincount(where, weights=train[known], minlength=len(values))[::-1].cumsum()
    # Smallest p-value first; where several are 0 to rounding, the larger excess.
    p_values = binom.logsf(correct - 1, guesses, p)
    best = np.lexsort((-(correct - p * guesses), np.asarray(p_values)))[0]
    return float(values[::-1][best])


def _check(r: int, w: int) -> None:
    if r < 1:
        raise StudyError(f"{r} guesses", where="guesses", remedy="needs at least one guess")
    if not 0 <= w <= r:
        raise StudyError(f"{w} of {r} guesses correct", where="correct", remedy="needs 0 to r correct")
