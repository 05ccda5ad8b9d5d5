"""The routing kernel against faiss and against the bare matrix product, 64k records x 8192 candidates, top 5."""

from __future__ import annotations

import faiss
import numpy as np
from numpy.typing import NDArray

from benchmarks.measurement import Measurement, in_turns
from coalmine.deploy.cluster import available_cores
from coalmine.protocol.route import route

RECORDS, CANDIDATES, DIMENSION, K = 65_536, 8192, 384, 5


def _unit(rng: np.random.Generator, n: int) -> NDArray[np.float32]:
    rows = rng.normal(size=(n, DIMENSION)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def measure() -> list[Measurement]:
    """Each library uses all cores."""
    rng = np.random.default_rng(0)
    records, candidates = _unit(rng, RECORDS), _unit(rng, CANDIDATES)
    index = faiss.IndexFlatIP(DIMENSION)
    index.add(candidates)
    out = np.empty((256, CANDIDATES), np.float32)

    def product() -> None:
        for start in range(0, RECORDS, 256):
            np.matmul(records[start : start + 256], candidates.T, out=out)

    ours, theirs, bare = in_turns(
        (lambda: route(records, candidates, K, threads=available_cores()), lambda: index.search(records, K), product)
    )
    return [
        Measurement("route", ours, "s"),
        Measurement("faiss IndexFlatIP (ties in no fixed order)", theirs, "s"),
        Measurement("matrix product alone", bare, "s"),
        Measurement("speed of route relative to faiss", theirs / ours, "x", "at least 0.85"),
        Measurement("speed of route relative to the product alone", bare / ours, "x"),
    ]
