"""What a benchmark reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


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


def in_turns(works: Sequence[Callable[[], object]], repeats: int = 5) -> list[float]:
    """``seconds`` of each, taken in turns, so that a machine that changes its pace changes it for all."""
    best = [float("inf")] * len(works)
    for work in works:
        work()
    for _ in range(repeats):
        for place, work in enumerate(works):
            best[place] = min(best[place], _once(work))
    return best


def _once(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
