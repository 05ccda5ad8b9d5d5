"""Draws of ``B = sum_u J_u s_u`` with independent ``J_u ~ Bernoulli(q)``: who takes part, as far as the score sees it.

Instead of one coin per user, the gap to the next participant is drawn, geometric with parameter q. Random bits are the
cost, so a gap is read off 16 of them: of the 65536 words, ``floor(65536 P(gap))`` stand for each gap, and the few words
left over call for 48 more bits that pick a gap from what the floors left out. The gaps' law is exact to float64.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.compiled import compiled
from coalmine.protocol.errors import StudyError
from coalmine.protocol.randomness import Purpose, stream

Array = NDArray[np.float64]
T = TypeVar("T")

CHUNK = 1 << 14
"""Trials that share one random stream. Part of the definition of the draws: another size gives other numbers."""
_WORDS = 1 << 16
_SKIP = 255
"""The last "gap" moves on by this many users without a participant (a geometric law has no memory)."""
_WORDS_PER_GAP = 4


@dataclass(frozen=True)
class _Gaps:
    """Attributes:
    direct: the gap for each 16-bit word below ``len(direct)``.
    rest: (256,) cumulative law of the gap for the other words.
    """

    direct: NDArray[np.uint8]
    rest: Array


@cache
def _gaps(q: float) -> _Gaps:
    words = _WORDS * np.append(q * (1 - q) ** np.arange(_SKIP), (1 - q) ** _SKIP)
    whole = np.floor(words)
    left_over = np.cumsum(words - whole)
    return _Gaps(
        np.repeat(np.arange(_SKIP + 1), whole.astype(np.int64)).astype(np.uint8),
        left_over / left_over[-1] if left_over[-1] > 0 else np.ones(_SKIP + 1),
    )


def background_sums(rng: np.random.Generator, projections: Array, q: float, n: int) -> Array:
    """(n,) independent draws of B.

    Args:
        projections: (N,) s_u, finite.
        q: participation rate in (0, 1].
    """
    moving = projections[projections != 0]
    if q > 0.5:
        # The absent are fewer than the participants; B is everyone less the absent.
        return moving.sum() - background_sums(rng, moving, 1 - q, n) if q < 1 else np.full(n, moving.sum())
    sums = np.zeros(n)
    if not len(moving):
        return sums
    gaps = _gaps(q)
    spare = _WORDS_PER_GAP * (len(moving) + 1)
    done = 0
    while done < n:
        expected = (n - done) * (q * len(moving) + len(moving) / _SKIP + 2)
        bits = rng.integers(0, 1 << 64, size=int(expected + spare) // 4 + 1, dtype=np.uint64, endpoint=False)
        done = _fill(bits.view(np.uint16), gaps.direct, gaps.rest, moving, sums, done)
    return sums


@compiled()
def _fill(
    words: NDArray[np.uint16], direct: NDArray[np.uint8], rest: Array, projections: Array, sums: Array, first: int
) -> int:
    """Fill ``sums[first:]`` while the words certainly last for one more trial; returns how far it got."""
    users = len(projections)
    at = 0
    for trial in range(first, len(sums)):
        if len(words) - at < _WORDS_PER_GAP * (users + 1):
            return trial
        total = 0.0
        user = 0
        while True:
            word = words[at]
            at += 1
            if word < len(direct):
                gap = int(direct[word])
            else:
                fraction = 0.0
                for _ in range(3):
                    fraction = (fraction + words[at]) / 65536.0
                    at += 1
                gap = 0
                while rest[gap] <= fraction:
                    gap += 1
            user += gap
            if user >= users:
                break
            if gap < _SKIP:
                total += projections[user]
                user += 1
        sums[trial] = total
    return len(sums)


def in_chunks(
    work: Callable[[np.random.Generator, int], T], trials: int, seed: int, name: str, threads: int | None
) -> list[T]:
    """Spread trials over threads so that results depend on (seed, name) alone.

    Args:
        work: called with a chunk's own stream and number of trials; threads help where it lets go of the interpreter.
        trials: >= 1.
        name: of the experiment; two names never share a stream.
        threads: ``None`` for one per core.

    Returns:
        what ``work`` gave for each chunk, in order.

    Raises:
        StudyError: no trials, or no threads.
    """
    if trials < 1:
        raise StudyError(f"{trials} trials", where="audit.trials", remedy="needs at least one trial")
    if threads is not None and threads < 1:
        raise StudyError(f"{threads} threads", where="threads", remedy="needs at least one thread")
    sizes = [min(CHUNK, trials - start) for start in range(0, trials, CHUNK)]

    def run(chunk: int) -> T:
        return work(stream(seed, Purpose.MONTE_CARLO, chunk, name), sizes[chunk])

    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        return list(pool.map(run, range(len(sizes))))


def check_score(projections: Array, s_canary: float, tau: float, q: float) -> None:
    """Refuse what is no score of the form ``sum_u J_u s_u + J s_canary + Normal(0, tau^2)``.

    Raises:
        StudyError: projections not one-dimensional or not finite, tau not > 0, q outside (0, 1].
    """
    if projections.ndim != 1 or not np.isfinite(projections).all() or not np.isfinite(s_canary):
        raise StudyError("a projection is not a finite number", where="projections", remedy="needs (N,) finite values")
    if not (tau > 0 and np.isfinite(tau)):
        raise StudyError(f"{tau!r} is not allowed", where="tau", remedy="needs a noise standard deviation > 0")
    if not 0 < q <= 1:
        raise StudyError(f"{q!r} is not allowed", where="privacy.q", remedy="needs a participation rate in (0, 1]")
