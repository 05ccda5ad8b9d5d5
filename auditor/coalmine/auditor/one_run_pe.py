"""The one-run audit of Private Evolution: many nonce canaries at once, each included on a coin of its own.

Every canary user has a few probes of its own in the bank. One release (or T on the same bank) gives each canary a
score; the largest are guessed "in", the smallest "out", and the number of right guesses is held against the claim. An
included canary still takes part with probability q only: hidden participation belongs to the mechanism, so the claim to
compare with is the one that includes q (user level, add/remove).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from coalmine.auditor.moments import moments
from coalmine.auditor.one_run import Guesses
from coalmine.protocol.errors import DataError, StudyError
from coalmine.protocol.privacy import Mechanism

Array = NDArray[np.float64]

INCLUSION = 0.5


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
    ell, _ = _log_ratios(releases, canaries, auxiliary, population, mechanism)
    q = mechanism.q
    log_absent = math.log1p(-q) if q < 1 else -math.inf
    return np.asarray(np.logaddexp(log_absent, math.log(q) + ell).sum(axis=0), np.float64)


def linear_scores(releases: Array, canaries: Array, auxiliary: Array, population: int, mechanism: Mechanism) -> Array:
    """Each canary's score before the mixture over participation, standardised: (m,).

    ``ell`` is linear in the release, so its sum over releases tends to a Gaussian: of mean 0 and deviation 1 for an
    excluded canary. Not a number for a canary without a vote on the probes.

    Args, Raises: as for :func:`canary_scores`.
    """
    ell, signal = _log_ratios(releases, canaries, auxiliary, population, mechanism)
    spread = np.sqrt(len(releases) * np.where(signal > 0, signal, np.nan))
    return np.asarray((ell + signal / 2).sum(axis=0) / spread, np.float64)


def _log_ratios(
    releases: Array, canaries: Array, auxiliary: Array, population: int, mechanism: Mechanism
) -> tuple[Array, Array]:
    """(T, m) ``ell`` of every release and canary, and (m,) its signal ``v^T Sigma_-j^-1 v``.

    Without the canary the mean of ``ell`` is minus half the signal, and its variance is the signal.
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
    return np.asarray(releases @ directions.T - middle, np.float64), np.asarray(signal, np.float64)


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
