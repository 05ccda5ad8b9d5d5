"""The one-run audit of Private Evolution: many nonce canaries at once, each included on a coin of its own.

Every canary user has a few probes of its own in the bank. One release (or T on the same bank) gives each canary a
score; the largest are guessed "in", the smallest "out", and the number of right guesses is held against the claim. An
included canary still takes part with probability q only: hidden participation belongs to the mechanism, so the claim to
compare with is the one that includes q (user level, add/remove).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from coalmine.auditor.moments import moments
from coalmine.auditor.one_run import (
    Guesses,
    gdp_eps_lower,
    inverse_blow_up,
    rejects_curve,
    steinke_eps_lower,
    steinke_p_value,
)
from coalmine.protocol.accounting import pld_deltas, pld_epsilon
from coalmine.protocol.errors import DataError, StudyError
from coalmine.protocol.finding import Evidence
from coalmine.protocol.privacy import Assurance, Claim, Mechanism

Array = NDArray[np.float64]

INCLUSION = 0.5
_CURVE_EPSILONS = np.concatenate([np.linspace(0.0, 12.0, 300), np.geomspace(12.1, 100.0, 60)])
"""Each gives two lines below the trade-off curve; how many only says how close they come to it."""
_CURVE_CELL = 1e-3
"""Of the privacy loss: ten times the accounting's own and ten times as fast; deltas are a little larger, never smaller
(by less than 1e-6 for six rounds at q = 0.1)."""
_SIGMA_REACH = 4.0
_SIGMA_PRECISION = 0.01


def canary_scores(releases: Array, canaries: Array, auxiliary: Array, population: int, mechanism: Mechanism) -> Array:
    """Each canary's log-likelihood ratio of being included, summed over releases: (m,).

    The model of ``score`` with the other canaries in the background: each of them adds its vote with probability
    ``q / 2``. For canary j, ``Sigma_-j = Sigma - c v v^T`` with ``c = q/2 (1 - q/2)``, so by Sherman and Morrison
    ``Sigma_-j^-1 v = a / (1 - c v^T a)`` with ``a = Sigma^-1 v``: one factorisation serves all. The inclusion is drawn
    once, participation in every round: ``ell_mix = log((1-q) + q exp(ell))`` adds up.

    Args:
        releases: (T, r) what was released on the probes of all canaries.
        canaries: (m, r) their clipped votes there. auxiliary: (n, r) those of public users.
        population: N, ordinary users that the auxiliary ones stand for.

    Raises:
        DataError: shapes that do not fit, or no auxiliary user.
    """
    if releases.ndim != 2 or canaries.ndim != 2 or releases.shape[1] != canaries.shape[1]:
        raise DataError(
            f"releases have shape {releases.shape}, canaries' votes {canaries.shape}",
            where="one-run audit",
            remedy="(T, r) and (m, r) on the same r coordinates",
        )
    users = moments(auxiliary, population, mechanism)
    rate = mechanism.q * INCLUSION
    variance = rate * (1 - rate)
    factor = cho_factor(users.covariance + variance * canaries.T @ canaries, lower=True)
    directions = np.asarray(cho_solve(factor, canaries.T).T, np.float64)
    shrink = 1 - variance * np.einsum("jr,jr->j", directions, canaries)
    directions /= shrink[:, None]
    signal = np.einsum("jr,jr->j", directions, canaries)
    centre = users.mean + rate * canaries.sum(axis=0)
    middle = directions @ centre - rate * signal + signal / 2
    ell = releases @ directions.T - middle
    q = mechanism.q
    log_absent = math.log1p(-q) if q < 1 else -math.inf
    return np.asarray(np.logaddexp(log_absent, math.log(q) + ell).sum(axis=0), np.float64)


def guess(scores: Array, included: NDArray[np.bool_], say_in: int, say_out: int) -> Guesses:
    """Guess "in" for the largest scores and "out" for the smallest, and count what is right.

    Args:
        scores: (m,). included: (m,) the truth, looked at after the guesses are made.
        say_in, say_out: numbers of guesses, fixed before the scores were seen; ties go to the lower index.

    Raises:
        StudyError: more guesses than canaries, or none.
    """
    if say_in < 0 or say_out < 0 or not 1 <= say_in + say_out <= len(scores):
        raise StudyError(
            f"{say_in} + {say_out} guesses on {len(scores)} canaries",
            where="guesses",
            remedy="needs at least one and at most one a canary",
        )
    order = np.argsort(-scores, kind="stable")
    right = int(included[order[:say_in]].sum()) + int((~included[order[len(order) - say_out :]]).sum())
    return Guesses(len(scores), say_in + say_out, right, INCLUSION)


@dataclass(frozen=True)
class OneRunAudit:
    """What one run shows. Each statement holds at its own level; together they would need a share of it each.

    Attributes:
        claim: of all releases, participation q included.
        steinke: formal lower bound on epsilon at the claim's delta.
        claim_p_value: of Steinke's test of the claim (eps_pld_upper, delta).
        curve_rejected: the claim's own trade-off curve is rejected (formal).
        sigma_rejected: every noise multiplier from here on is rejected at this q and number of releases (formal);
            ``None`` where none is, up to four times the claimed one.
        family_eps: epsilon of a subsampled Gaussian with that multiplier, 0 without one; heuristic for any other
            mechanism.
        gdp: the largest rejected mu-GDP curve read as epsilon, heuristic (subsampling is not GDP).
    """

    claim: Claim
    guesses: Guesses
    say_in: int
    say_out: int
    level: float
    steinke: Evidence
    claim_p_value: float
    curve_rejected: bool
    sigma_rejected: float | None
    family_eps: float
    gdp: Evidence


def audit(seen: Guesses, say_in: int, say_out: int, claim: Claim, level: float) -> OneRunAudit:
    """Hold the guesses against the claim.

    Args:
        seen: made as :func:`guess` does, ``say_in`` and ``say_out`` fixed beforehand. level: of each statement.

    Raises:
        StudyError: a value out of its range.
    """
    details = {"canaries": float(seen.canaries), "guesses": float(seen.guesses), "correct": float(seen.correct)}
    sigma = smallest_rejected_sigma(seen, claim.q, claim.sigma, claim.rounds, level)
    return OneRunAudit(
        claim=claim,
        guesses=seen,
        say_in=say_in,
        say_out=say_out,
        level=level,
        steinke=Evidence(
            "one-run/steinke",
            Assurance.FORMAL,
            steinke_eps_lower(seen, claim.delta, level),
            1 - level,
            None,
            details,
        ),
        claim_p_value=steinke_p_value(seen, claim.eps_pld_upper, claim.delta),
        curve_rejected=rejects_curve(seen, claim_curve(claim.q, claim.sigma, claim.rounds), level),
        sigma_rejected=sigma,
        family_eps=0.0 if sigma is None else pld_epsilon(claim.q, sigma, claim.rounds, claim.delta)[0],
        gdp=Evidence(
            "one-run/gdp", Assurance.HEURISTIC, gdp_eps_lower(seen, claim.delta, level), 1 - level, None, details
        ),
    )


def claim_curve(q: float, sigma: float, rounds: int) -> Callable[[float], float]:
    """A lower estimate of the inverse blow-up of ``rounds`` subsampled Gaussians, from the pessimistic PLD."""
    deltas = pld_deltas(q, sigma, rounds, _CURVE_EPSILONS, cell=_CURVE_CELL)
    return inverse_blow_up(_CURVE_EPSILONS, np.clip(deltas, 0.0, 1.0))


def smallest_rejected_sigma(seen: Guesses, q: float, claimed: float, rounds: int, level: float) -> float | None:
    """The noise multiplier from which on the subsampled Gaussian's curve is rejected, rounded up by at most 1 %.

    More noise means a curve that allows fewer right guesses, so what is rejected stays rejected above. Looked for from
    a quarter of the claimed one to four times it.

    Returns:
        ``None`` where four times the claimed one is not rejected.
    """

    def rejected(sigma: float) -> bool:
        return rejects_curve(seen, claim_curve(q, sigma, rounds), level)

    low, high = claimed / _SIGMA_REACH, claimed * _SIGMA_REACH
    if not rejected(high):
        return None
    while high / low > 1 + _SIGMA_PRECISION:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if rejected(middle) else (middle, high)
    return high
