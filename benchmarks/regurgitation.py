"""Regurgitation over 100,000 private and 100,000 synthetic records of 60 words, against Python sets of n-grams.

Words are drawn from 50,000 by Zipf's law; one synthetic record in twenty is copied. The sets get the first twentieth
of both sides; their time for all is that times twenty, which favours them: it leaves out what larger sets cost.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.measurement import Measurement
from coalmine.auditor.disclosure.feature_class import Entry, Matches
from coalmine.auditor.disclosure.regurgitation import Regurgitation

RECORDS, WORDS, VOCABULARY, COPIED, PART = 100_000, 60, 50_000, 20, 20


class Drawn:
    """``records`` on either side, the same at every reading."""

    def __init__(self, records: int) -> None:
        rng = np.random.default_rng(0)
        weights = 1 / np.arange(1, VOCABULARY + 1)
        draws = rng.choice(VOCABULARY, (2, records, WORDS), p=weights / weights.sum())
        words = [f"word{i}" for i in range(VOCABULARY)]
        self._sides = [[" ".join([words[i] for i in row]) for row in side.tolist()] for side in draws]
        self._sides[1][::COPIED] = self._sides[0][::COPIED]
        self.train = np.arange(records) % 2 == 0

    def private(self) -> Iterator[Entry]:
        return (Entry(user, text) for user, text in enumerate(self._sides[0]))

    def synthetic(self) -> Iterator[str]:
        return iter(self._sides[1])


def measure() -> list[Measurement]:
    """In processes of their own, so that each has its own peak of memory."""
    ours, theirs = _alone("kernel"), _alone("sets")
    if ours["part"] != theirs["part"]:
        raise RuntimeError(f"{ours['part']} features, but sets find {theirs['part']}")
    projected = theirs["seconds"] * PART
    return [
        Measurement(
            "100k against 100k records, compiling included", ours["seconds"] + ours["compiling"], "s", "at most 90"
        ),
        Measurement("100k against 100k records, once compiled", ours["seconds"], "s"),
        Measurement("peak memory with the texts", ours["gigabytes"], "GB", "at most 4"),
        Measurement("peak memory of the texts alone", ours["texts"], "GB"),
        Measurement("n-grams held by one user", ours["found"], ""),
        Measurement("Python sets, a twentieth", theirs["seconds"], "s"),
        Measurement("Python sets, all (projected)", projected, "s"),
        Measurement("faster than Python sets, once compiled", projected / ours["seconds"], "x", "at least 10"),
        Measurement("faster, compiling included", projected / (ours["seconds"] + ours["compiling"]), "x"),
        Measurement("sets' peak memory, all (projected)", theirs["gigabytes"] * PART, "GB"),
    ]


def _alone(way: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-m", __name__, way], capture_output=True, text=True, check=True)
    numbers: dict[str, float] = json.loads(done.stdout)
    return numbers


def _peak() -> float:
    with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123
        return next(float(line.split()[1]) / 2**20 for line in status if line.startswith("VmHWM"))


def _timed(work: Callable[[], list[Matches]]) -> tuple[float, list[Matches]]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def _kernel() -> dict[str, float]:
    part, material = Drawn(RECORDS // PART), Drawn(RECORDS)
    texts = _peak()
    (first, (of_part,)), (again, _), (took, (matches,)) = (
        _timed(lambda side=side: Regurgitation().matches(side, [1])) for side in (part, part, material)
    )
    return {
        "seconds": took,
        "compiling": first - again,
        "texts": texts,
        "gigabytes": _peak(),
        "found": len(matches.features),
        "part": len(of_part.features),
    }


def _sets() -> dict[str, float]:
    """Plain, but no straw man: one set of the synthetic n-grams, and users kept for those alone."""
    material = Drawn(RECORDS // PART)
    before = _peak()
    lengths = range(Regurgitation().n_min, Regurgitation().n_max + 1)
    started = time.perf_counter()
    known: set[str] = set()
    for text in material.synthetic():
        words = text.split()
        for n in lengths:
            known.update([" ".join(words[i : i + n]) for i in range(len(words) - n + 1)])
    holders: dict[str, set[int]] = {}
    for entry in material.private():
        words = entry.text.split()
        for n in lengths:
            for ngram in known.intersection([" ".join(words[i : i + n]) for i in range(len(words) - n + 1)]):
                holders.setdefault(ngram, set()).add(entry.user)
    rare = sum(len(users) == 1 for users in holders.values())
    return {"seconds": time.perf_counter() - started, "gigabytes": _peak() - before, "part": rare}


if __name__ == "__main__":
    print(json.dumps(_kernel() if sys.argv[1] == "kernel" else _sets()))
