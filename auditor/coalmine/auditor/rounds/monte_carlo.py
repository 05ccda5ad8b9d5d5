"""Monte-Carlo over rounds: every trial draws each round's participation and noise anew and sums ``ell_mix``.

One pass serves all prefixes, each with thresholds of its own, and one set of background and noise draws serves both
hypotheses. Each Clopper-Pearson bound concerns one prefix and one hypothesis, whose trials are independent of each
other; the union bound over bounds asks nothing of how prefixes or hypotheses depend on one another. A level therefore
holds for each prefix on its own; for all T prefixes at once, share it among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coalmine.auditor.cohorts import Array, background_sums, in_chunks
from coalmine.auditor.rounds.path import ScoredRound, check_path
from coalmine.protocol.errors import StudyError


@dataclass(frozen=True)
class PathCounts:
    """How often the summed score exceeds each prefix's thresholds.

    Attributes:
        tp, fp: per prefix (n,) int64, with the canary eligible in every round and without it.
        trials: per hypothesis.
    """

    tp: tuple[NDArray[np.int64], ...]
    fp: tuple[NDArray[np.int64], ...]
    trials: int


def count(
    path: Sequence[ScoredRound],
    thresholds: Sequence[ArrayLike],
    trials: int,
    seed: int,
    *,
    name: str = "",
    threads: int | None = None,
) -> PathCounts:
    """Counts of ``S > threshold`` after 1, ..., T rounds; the same for any number of threads.

    The counts of a prefix do not depend on the rounds that follow it.

    Args:
        path: T >= 1 rounds.
        thresholds: per prefix a scalar or (n,), on the summed ``ell_mix``, fixed without these trials.
        trials: per hypothesis, >= 1.
        seed, name: the draws depend on these two alone; give every experiment its own name.
        threads: ``None`` for one per core.

    Raises:
        StudyError: a value out of its range.
    """
    levels = check_thresholds(path, thresholds)
    orders = [np.argsort(each) for each in levels]

    def above(scores: Array, prefix: int) -> NDArray[np.int64]:
        """How many scores exceed each level of a prefix, in the order of the sorted levels."""
        exceeded = np.searchsorted(levels[prefix][orders[prefix]], scores, side="left")
        return len(scores) - np.cumsum(np.bincount(exceeded, minlength=len(levels[prefix]) + 1))[:-1]

    def work(rng: np.random.Generator, n: int) -> list[NDArray[np.int64]]:
        return [
            np.stack([above(present, prefix), above(absent, prefix)])
            for prefix, (absent, present) in enumerate(running_sums(rng, path, n))
        ]

    parts = in_chunks(work, trials, seed, name, threads)
    tp, fp = [], []
    for prefix, order in enumerate(orders):
        totals = np.empty((2, len(order)), np.int64)
        totals[:, order] = np.sum([part[prefix] for part in parts], axis=0)
        tp.append(totals[0])
        fp.append(totals[1])
    return PathCounts(tuple(tp), tuple(fp), trials)


def sums(
    path: Sequence[ScoredRound], trials: int, seed: int, *, name: str = "", threads: int | None = None
) -> tuple[Array, Array]:
    """The trials themselves: (T, trials) summed scores without the canary and with an eligible one, for histograms.

    The draws are those of :func:`count` with the same seed and name. Arguments and errors as there.
    """
    check_path(path)
    parts = in_chunks(lambda rng, n: np.array(list(running_sums(rng, path, n))), trials, seed, name, threads)
    whole = np.concatenate(parts, axis=2)
    return whole[:, 0], whole[:, 1]


def running_sums(rng: np.random.Generator, path: Sequence[ScoredRound], n: int) -> Iterator[tuple[Array, Array]]:
    """After each round (n,) sums of ``ell_mix`` without the canary, and with it."""
    absent, present = np.zeros(n), np.zeros(n)
    for each in path:
        statistic = background_sums(rng, each.projections, each.score.q, n)
        statistic += each.score.noise_std * rng.standard_normal(n)
        absent = absent + each.ell_mix(statistic)
        statistic[rng.random(n) < each.score.q] += each.shift
        present = present + each.ell_mix(statistic)
        yield absent, present


def check_thresholds(path: Sequence[ScoredRound], thresholds: Sequence[ArrayLike]) -> list[Array]:
    """Per prefix (n,) thresholds.

    Raises:
        StudyError: no round, not one set of thresholds per prefix, or a threshold that is not a number.
    """
    check_path(path)
    levels = [np.atleast_1d(np.asarray(each, float)) for each in thresholds]
    if len(levels) != len(path):
        raise StudyError(
            f"{len(levels)} sets of thresholds for {len(path)} rounds", where="thresholds", remedy="one per prefix"
        )
    if any(np.isnan(each).any() for each in levels):
        raise StudyError("a threshold is not a number", where="thresholds", remedy="needs numbers or infinities")
    return levels
