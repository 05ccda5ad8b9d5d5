"""Do train and holdout lie equally close to the synthetic output? A permutation test over users (energy distance).

A user's sample is the vector of its cosines to the nearest synthetic records (arXiv 2606.16952, section 6). Without
learning, which users are in train is random given these vectors, for independent coins and for a fixed size alike, so
the p-value is exact. The energy distance is that of Szekely and Rizzo (2013).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

PERMUTATIONS = 1_999
MOST_USERS = 2_000
"""More users than this are drawn down to it: the test compares all pairs."""


@dataclass(frozen=True)
class TwoSample:
    """One test.

    Attributes:
        quantile: the rarest users in this share of all took part. train, holdout: how many of each were compared.
        distance: energy distance, >= 0 but for rounding.
        closer: mean cosine of train minus that of holdout; a leak makes it positive.
    """

    quantile: float
    train: int
    holdout: int
    distance: float
    closer: float
    p_value: float
    permutations: int


def two_sample(
    nearest: Array, rarity: Array, train: Mask, quantile: float, generator: np.random.Generator
) -> TwoSample | None:
    """The test among the rarest users; ``None`` with fewer than two of either split, or if all are alike.

    Args:
        nearest: (n, kappa) cosines. rarity: (n,), low is rare, NaN is left out. quantile: in (0, 1].
    """
    chosen = rarest(rarity, quantile)
    if len(chosen) > MOST_USERS:
        chosen = generator.choice(chosen, MOST_USERS, replace=False)
    rows, inside = nearest[chosen], train[chosen]
    n1, n0 = int(inside.sum()), int((~inside).sum())
    if n1 < 2 or n0 < 2:
        return None
    apart = cdist(rows, rows)
    if not apart.any():
        return None
    seen = float(_energy(apart, inside[:, None])[0])
    exceeded = 0
    for start in range(0, PERMUTATIONS, 200):
        size = min(200, PERMUTATIONS - start)
        order = generator.permuted(np.tile(inside, (size, 1)), axis=1).T
        exceeded += int((_energy(apart, order) >= seen - 1e-12).sum())
    return TwoSample(
        quantile,
        n1,
        n0,
        seen,
        float(rows[inside].mean() - rows[~inside].mean()),
        (1 + exceeded) / (PERMUTATIONS + 1),
        PERMUTATIONS,
    )


def rarest(rarity: Array, quantile: float) -> NDArray[np.int64]:
    """Indices of the rarest share of users, at least one where any has a rarity."""
    known = np.flatnonzero(~np.isnan(rarity))
    count = min(len(known), max(1, round(quantile * len(known))))
    return known[np.argsort(rarity[known], kind="stable")[:count]]


def _energy(apart: Array, inside: NDArray[np.bool_]) -> Array:
    """(b,) energy distances of b splits, (n, b): 2 E|X-Y| - E|X-X'| - E|Y-Y'|."""
    a = inside.astype(float)
    b = 1 - a
    n1, n0 = a.sum(axis=0), b.sum(axis=0)
    to_train = apart @ a
    within, across = (a * to_train).sum(axis=0), (b * to_train).sum(axis=0)
    rest = float(apart.sum()) - within - 2 * across
    return np.asarray(2 * across / (n1 * n0) - within / n1**2 - rest / n0**2)
