"""One user's vote, in its plain form (arXiv 2609.13499; Private Evolution, Lin et al. 2024).

This is what every client must compute and what the fast kernels in ``route`` and ``tally`` must equal bit for bit.

A vote is summed as integers on a fixed-point grid, rounded toward zero, so that a sum is the same for any sharding and
order and a vote's norm never exceeds C.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.privacy import Mechanism

_NUDGE = 1.0 - 2.0**-50
"""Covers the three float64 roundings below (each at most 2**-53), so that no grid value exceeds its true value."""


def grid_bits(eligible: int, mechanism: Mechanism) -> int:
    """Fractional bits of the grid: 48, fewer where the public N * C (plus 40 sigma of noise) needs the int64 range."""
    reach = eligible * mechanism.clip + 40 * mechanism.noise_std
    return min(48, 62 - math.ceil(math.log2(max(reach, 1.0))))


def nearest_candidates(record: NDArray[np.floating], candidates: NDArray[np.floating], k: int) -> NDArray[np.int64]:
    """The k nearest candidates (Euclidean) to one record, nearest first, ties to the lowest index.

    Args:
        record: (d,). candidates: (p, d).
    """
    difference = record.astype(np.float64) - candidates.astype(np.float64)
    distance = np.cumsum(difference * difference, axis=1)[:, -1]  # one fixed order of summation on every machine
    order: NDArray[np.int64] = np.argsort(distance, kind="stable")
    return order[:k].copy()


def grid_scale(squared_count: int, total: int, clip: float, bits: int) -> float:
    """Grid units per vote count: 2**bits * min(1 / total, C / ||counts||), nudged down.

    Args:
        squared_count: ||counts||^2 of one user. total: |D_u| * k.
    """
    return min(1.0 / total, clip / math.sqrt(squared_count)) * 2.0**bits * _NUDGE


def vote(
    records: NDArray[np.floating], candidates: NDArray[np.floating], mechanism: Mechanism, bits: int
) -> NDArray[np.int64]:
    """Route, normalise, clip.

    Args:
        records: (n, d) the user's embedded records; n = 0 gives the zero vote. candidates: (p, d).

    Returns:
        (p,) the clipped vote on the grid: ``vote / 2**bits`` has L2 norm at most C.
    """
    counts: NDArray[np.int64] = np.zeros(len(candidates), np.int64)
    for record in records:
        counts[nearest_candidates(record, candidates, mechanism.votes_per_record)] += 1
    if not counts.any():
        return counts
    scale = grid_scale(int(counts @ counts), int(counts.sum()), mechanism.clip, bits)
    units: NDArray[np.int64] = np.trunc(counts * scale).astype(np.int64)
    return units
