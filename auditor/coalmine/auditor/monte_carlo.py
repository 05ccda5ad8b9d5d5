"""Projected Monte-Carlo: trials of the score from the test users' projections.

Without the canary ``T = sum_u J_u s_u + Normal(0, tau^2)``; with an eligible one ``T + J s_canary``, all J being
Bernoulli(q).

One set of background and noise draws serves both hypotheses. Each Clopper-Pearson bound concerns one hypothesis, whose
trials are independent of each other, and the union bound over the bounds asks nothing of how the hypotheses' trials
depend on one another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coalmine.auditor.cohorts import Array, background_sums, check_score, in_chunks
from coalmine.protocol.errors import StudyError


@dataclass(frozen=True)
class Counts:
    """How often ``T > threshold``.

    Attributes:
        tp, fp: (n,) int64, one count per threshold, with the canary eligible and without it.
        trials: per hypothesis.
    """

    tp: NDArray[np.int64]
    fp: NDArray[np.int64]
    trials: int


def count(
    projections: Array,
    s_canary: float,
    tau: float,
    q: float,
    thresholds: ArrayLike,
    trials: int,
    seed: int,
    *,
    name: str = "",
    threads: int | None = None,
) -> Counts:
    """Counts of ``T > threshold`` under both hypotheses; the same for any number of threads.

    Args:
        projections: (N,) s_u of the test users; those that are 0 cost nothing.
        s_canary: what the canary adds when it takes part.
        tau: standard deviation of the noise in T, > 0.
        q: participation rate in (0, 1].
        thresholds: scalar or (n,), on T, fixed without these trials; may be infinite.
        trials: per hypothesis, >= 1.
        seed, name: the draws depend on these two alone; give every experiment its own name.
        threads: ``None`` for one per core.

    Raises:
        StudyError: a value out of its range.
    """
    check_score(projections, s_canary, tau, q)
    levels = np.atleast_1d(np.asarray(thresholds, float))
    if np.isnan(levels).any():
        raise StudyError("a threshold is not a number", where="thresholds", remedy="needs numbers or infinities")
    order = np.argsort(levels)

    def above(scores: Array) -> NDArray[np.int64]:
        """How many scores exceed each level, in the order of the sorted levels."""
        exceeded = np.searchsorted(levels[order], scores, side="left")
        return len(scores) - np.cumsum(np.bincount(exceeded, minlength=len(levels) + 1))[:-1]

    def work(rng: np.random.Generator, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        absent, present = _draw(rng, projections, s_canary, tau, q, n)
        return above(present), above(absent)

    parts = in_chunks(work, trials, seed, name, threads)
    tp, fp = np.empty(len(levels), np.int64), np.empty(len(levels), np.int64)
    tp[order], fp[order] = np.sum(parts, axis=0)
    return Counts(tp, fp, trials)


def scores(
    projections: Array,
    s_canary: float,
    tau: float,
    q: float,
    trials: int,
    seed: int,
    *,
    name: str = "",
    threads: int | None = None,
) -> tuple[Array, Array]:
    """The trials themselves: (trials,) scores without the canary and with an eligible one, for histograms.

    The draws are those of :func:`count` with the same seed and name. Arguments and errors as there.
    """
    check_score(projections, s_canary, tau, q)
    parts = in_chunks(lambda rng, n: _draw(rng, projections, s_canary, tau, q, n), trials, seed, name, threads)
    return np.concatenate([absent for absent, _ in parts]), np.concatenate([present for _, present in parts])


def _draw(
    rng: np.random.Generator, projections: Array, s_canary: float, tau: float, q: float, n: int
) -> tuple[Array, Array]:
    """(n,) scores without the canary, and with it."""
    absent = background_sums(rng, projections, q, n)
    absent += tau * rng.standard_normal(n)
    return absent, absent + s_canary * (rng.random(n) < q)
