"""What a benchmark reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Measurement:
    """One figure beside the promise it belongs to ("" where there is none)."""

    name: str
    value: float
    unit: str
    promise: str = ""


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """The fastest of a few runs, wall clock, after one run that is not counted."""
    work()
    best = float("inf")
    for _ in range(repeats):
        best = min(best, _once(work))
    return best


def in_turns(works: Sequence[Callable[[], object]], repeats: int = 25) -> list[float]:
    """Median seconds of each, taken in turns, after a run of each that is not counted.

    A shared machine changes its pace from moment to moment: in turns it changes for all, and the fastest of a few runs
    would compare who met the quieter moment.
    """
    taken: list[list[float]] = [[] for _ in works]
    for work in works:
        work()
    for _ in range(repeats):
        for work, own in zip(works, taken, strict=True):
            own.append(_once(work))
    return [median(own) for own in taken]


def _once(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
