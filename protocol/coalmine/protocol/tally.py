"""The votes of many users at speed: counts, clip and sum on the fixed-point grid.

Equals ``vote.vote`` user by user; keeps only the at most |D_u| * k coordinates a user votes for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.route import Routes
from coalmine.protocol.vote import grid_scale


@dataclass(frozen=True)
class Votes:
    """Sparse clipped votes of n users (compressed rows).

    Attributes:
        start: (n + 1,) int64 row starts.
        index: (nnz,) int32 bank indices, ascending within a user.
        units: (nnz,) int64 grid units; ``units / 2**bits`` is the vote.
        bits: fractional bits of the grid.
    """

    start: NDArray[np.int64]
    index: NDArray[np.int32]
    units: NDArray[np.int64]
    bits: int

    def __len__(self) -> int:
        return len(self.start) - 1

    def on(self, coordinates: NDArray[np.integer], size: int) -> NDArray[np.float64]:
        """The votes on some coordinates of a bank of ``size`` candidates: (n, len(coordinates)) float64."""
        column = np.full(size, -1, np.int64)
        column[coordinates] = np.arange(len(coordinates))
        dense = np.zeros((len(self), len(coordinates)))
        row = np.repeat(np.arange(len(self)), np.diff(self.start))
        kept = column[self.index] >= 0
        dense[row[kept], column[self.index[kept]]] = self.units[kept] / 2.0**self.bits
        return dense


def tally(routes: Routes, offsets: NDArray[np.integer], mechanism: Mechanism, bits: int) -> Votes:
    """Clipped votes of users whose records are rows ``offsets[u] : offsets[u + 1]`` of ``routes``.

    Args:
        offsets: (n + 1,) row starts; a user without records gets the zero vote.
    """
    users, k = len(offsets) - 1, routes.index.shape[1]
    owner = np.repeat(np.arange(users, dtype=np.int64), np.diff(offsets) * k)
    ballots = np.sort((owner << 32) | routes.index.ravel().astype(np.int64))
    first = np.flatnonzero(np.diff(ballots, prepend=-1))
    counts = np.diff(first, append=len(ballots))
    voter, index = ballots[first] >> 32, (ballots[first] & 0xFFFFFFFF).astype(np.int32)
    squared = np.bincount(voter, counts.astype(np.float64) ** 2, users)  # whole numbers below 2**53: exact
    scale = np.array(
        [
            grid_scale(int(norm), int(total), mechanism.clip, bits) if norm else 0.0
            for norm, total in zip(squared, np.diff(offsets) * k, strict=True)
        ]
    )
    units = np.trunc(counts * scale[voter]).astype(np.int64)
    return Votes(np.searchsorted(voter, np.arange(users + 1)), index, units, bits)


def add_votes(votes: Votes, taking_part: NDArray[np.bool_], into: NDArray[np.int64]) -> None:
    """Add the votes of the users that take part to ``into`` (p,), in place."""
    counted = np.repeat(taking_part, np.diff(votes.start))
    np.add.at(into, votes.index[counted], votes.units[counted])
