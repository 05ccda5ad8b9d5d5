"""Who is in a batch. A coin belongs to a sample id, so any split of the data among clients meets the same batches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def poisson_batch(rng: np.random.Generator, universe: int, q: float) -> NDArray[np.bool_]:
    """(universe,) whether the sample with each id is drawn, were it there. Ids are 0 ... universe - 1, public."""
    return rng.random(universe) < q


def shuffled_batches(rng: np.random.Generator, active: NDArray[np.bool_], steps: int) -> list[NDArray[np.int64]]:
    """One epoch of shuffled batches: the active ids in random order, in ``steps`` nearly equal slices.

    Args:
        active: (universe,) which ids are there and not dropped.
    """
    order = np.argsort(rng.random(len(active)), kind="stable")
    return [part.astype(np.int64) for part in np.array_split(order[active[order]], steps)]
