"""What a benchmark reports."""

from __future__ import annotations

import time
from collections.abc import Callable
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
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return best
