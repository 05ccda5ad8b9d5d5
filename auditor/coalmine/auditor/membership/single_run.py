"""One-run audits of a training run: formal readings first, then the heuristic ones (see ``auditor.one_run``)."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from coalmine.auditor import one_run
from coalmine.auditor.bisection import last_true
from coalmine.auditor.one_run import Guesses
from coalmine.protocol.accounting import pld_deltas, pld_epsilon
from coalmine.protocol.errors import StudyError
from coalmine.protocol.finding import Evidence
from coalmine.protocol.privacy import Assurance, Claim

_EPSILONS = np.concatenate([np.linspace(0, 20, 401), np.linspace(20.5, 60, 80)])
_NOISE_STEP = 1.02
"""Noise multipliers of a family are tried on a geometric grid of 2 %."""
_DOWN, _UP, _LEAST_NOISE = 70, 207, 0.1


def guess(scores: ArrayLike, included: ArrayLike, k_in: int, k_out: int) -> Guesses:
    """ "In" on the k_in largest scores, "out" on the k_out smallest, nothing between; ties by the canary's number.

    Args:
        scores: (m,) higher = more likely in. included: (m,) the coins, each 1/2. k_in, k_out: fixed beforehand.

    Raises:
        StudyError: more guesses than canaries, or scores that are no numbers.
    """
    score, coin = np.asarray(scores, np.float64), np.asarray(included, np.bool_)
    if k_in < 0 or k_out < 0 or not 1 <= k_in + k_out <= len(score):
        raise StudyError(
            f"{k_in} + {k_out} guesses on {len(score)} canaries", where="one-run audit", remedy="needs 1 to m guesses"
        )
    if np.isnan(score).any():
        raise StudyError("a score is not a number", where="one-run audit", remedy="a diverged model cannot be audited")
    order = np.argsort(score, kind="stable")
    right = int(coin[order[len(score) - k_in :]].sum()) + int((~coin[order[:k_out]]).sum())
    return Guesses(len(score), k_in + k_out, right)


def audit_single_run(
    claim: Claim, scores: ArrayLike, included: ArrayLike, k_in: int, k_out: int, level: float
) -> tuple[Evidence, ...]:
    """Steinke et al. and the claim's own curve (formal); the GDP and Gaussian readings (heuristic).

    Args:
        level: significance of each test alone.

    Raises:
        StudyError: a value out of its range.
    """
    seen = guess(scores, included, k_in, k_out)
    counts = {"canaries": float(seen.canaries), "guesses": float(seen.guesses), "correct": float(seen.correct)}
    steinke = one_run.steinke_eps_lower(seen, claim.delta, level)
    noise = smallest_rejected_noise(seen, claim, level)
    own = 0.0 if noise is None else pld_epsilon(claim.q, noise, claim.rounds, claim.delta)[0]
    mu = one_run.gdp_mu_lower(seen, level)
    return (
        Evidence("one_run/steinke", Assurance.FORMAL, steinke, 1 - level, None, counts),
        Evidence(
            "one_run/claim_curve",
            Assurance.FORMAL,
            own,
            1 - level,
            None,
            {
                **counts,
                "claim_rejected": float(noise is not None and noise <= claim.sigma),
                **({} if noise is None else {"rejected_sigma": noise}),
            },
        ),
        Evidence(
            "one_run/gdp",
            Assurance.HEURISTIC,
            one_run.gdp_eps_lower(seen, claim.delta, level),
            None,
            None,
            {**counts, "mu": mu},
        ),
        gaussian(scores, included, claim.delta),
    )


def smallest_rejected_noise(seen: Guesses, claim: Claim, level: float) -> float | None:
    """The least noise multiplier of the claim's family (same q, same rounds) whose trade-off curve is rejected.

    At or below the claim's own sigma the claim itself is rejected. Formal: each curve is bounded from its pessimistic
    privacy profile, and curves of less noise are easier to meet, so one bisection is one statement.

    Returns:
        On a 2 % grid between a quarter and sixty times the claim's sigma; ``None`` if none is rejected.
    """
    steps = [step for step in range(-_DOWN, _UP + 1) if claim.sigma * _NOISE_STEP**step >= _LEAST_NOISE]
    grid = [claim.sigma * _NOISE_STEP**step for step in steps]

    @cache
    def rejected(index: int) -> bool:
        deltas = pld_deltas(claim.q, grid[index], claim.rounds, _EPSILONS)
        return one_run.rejects_curve(seen, one_run.inverse_blow_up(_EPSILONS, deltas), level)

    if not rejected(len(grid) - 1):
        return None
    low, high = -1, len(grid) - 1  # rejected at high, not at low (or not known)
    own = steps.index(0) if 0 in steps else 0
    low, high = (-1, own) if rejected(own) else (own, high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rejected(middle) else (middle, high)
    return grid[high]


def gaussian(scores: ArrayLike, included: ArrayLike, delta: float) -> Evidence:
    """Heuristic: included and excluded scores as two Gaussians, epsilon where their hockey-stick divergence is delta.

    After Agrawal et al. 2026 (arXiv 2606.12733): tight where scores are sums, asymptotic, no confidence. With scores
    that come from one run, it measures how far the canaries' scores are apart, not the mechanism's worst case.

    Raises:
        StudyError: fewer than two scores on a side, or without spread.
    """
    score, coin = np.asarray(scores, np.float64), np.asarray(included, np.bool_)
    sides = score[coin], score[~coin]
    if min(map(len, sides)) < 2 or min(float(side.std()) for side in sides) == 0:
        raise StudyError(
            "scores without spread", where="one-run audit", remedy="needs two different scores on each side"
        )
    (m1, s1), (m0, s0) = ((float(side.mean()), float(side.std(ddof=1))) for side in sides)
    eps = gaussian_eps(m1, s1, m0, s0, delta)
    details = {"mean_in": m1, "std_in": s1, "mean_out": m0, "std_out": s0}
    return Evidence("one_run/gaussian", Assurance.HEURISTIC, eps, None, None, details)


def gaussian_eps(m1: float, s1: float, m0: float, s0: float, delta: float) -> float:
    """The smallest epsilon >= 0 at which N(m1, s1^2) and N(m0, s0^2) are (epsilon, delta)-indistinguishable."""

    def too_small(eps: float) -> bool:
        return max(_hockey_stick(m1, s1, m0, s0, eps), _hockey_stick(m0, s0, m1, s1, eps)) > delta

    if not too_small(0.0):
        return 0.0
    high = 1.0
    while too_small(high) and high < 2.0**20:
        high *= 2
    return last_true(too_small, 0.0, high)


def _hockey_stick(m1: float, s1: float, m0: float, s0: float, eps: float) -> float:
    """``max_E P(E) - e^eps Q(E)`` with P = N(m1, s1^2), Q = N(m0, s0^2): E is where the log ratio exceeds eps.

    In units of Q, x = m0 + s0 z, the log ratio is a quadratic in z.
    """
    shift, scale = (m1 - m0) / s0, s1 / s0
    a = (1 - 1 / scale**2) / 2
    b, c = shift / scale**2, -(shift**2) / (2 * scale**2) - np.log(scale) - eps
    inside: list[tuple[float, float]]
    if abs(a) < 1e-12:
        if b == 0:
            inside = [(-np.inf, np.inf)] if c > 0 else []
        else:
            inside = [(-c / b, np.inf)] if b > 0 else [(-np.inf, -c / b)]
    else:
        discriminant = b * b - 4 * a * c
        if discriminant <= 0:
            inside = [(-np.inf, np.inf)] if a > 0 else []
        else:
            q = -(b + np.copysign(np.sqrt(discriminant), b)) / 2
            low, high = sorted((q / a, c / q))
            inside = [(-np.inf, low), (high, np.inf)] if a > 0 else [(low, high)]
    total = 0.0
    for low, high in inside:
        p = _mass((low - shift) / scale, (high - shift) / scale)
        total += p - float(np.exp(min(eps, 700.0))) * _mass(low, high)
    return max(0.0, total)


def _mass(low: float, high: float) -> float:
    """Of a standard normal between two points, from the tail where it is small."""
    return float(ndtr(-low) - ndtr(-high)) if low > 0 else float(ndtr(high) - ndtr(low))
