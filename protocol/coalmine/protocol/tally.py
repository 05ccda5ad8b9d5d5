"""The votes of many users at speed: counts, clip and sum on the fixed-point grid.

Equals ``vote.vote`` user by user; keeps only the at most |D_u| * k coordinates a user votes for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.route import Routes
from coalmine.protocol.vote import grid_scale

_scale = numba.njit(nogil=True, cache=True)(grid_scale)


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
    start, index, units = _tally(routes.index, np.ascontiguousarray(offsets, np.int64), mechanism.clip, bits)
    return Votes(start, index, units, bits)


def add_votes(votes: Votes, taking_part: NDArray[np.bool_], into: NDArray[np.int64]) -> None:
    """Add the votes of the users that take part to ``into`` (p,), in place."""
    _add(votes.start, votes.index, votes.units, taking_part, into)


@numba.njit(nogil=True, cache=True)
def _tally(routes, offsets, clip, bits):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    users = offsets.shape[0] - 1
    k = routes.shape[1]
    start = np.zeros(users + 1, np.int64)
    index = np.empty(routes.shape[0] * k, np.int32)
    units = np.empty(routes.shape[0] * k, np.int64)
    filled = 0
    for user in range(users):
        chosen = np.sort(routes[offsets[user] : offsets[user + 1]].copy().reshape(-1))
        first = filled
        for i in range(chosen.shape[0]):
            if filled > first and index[filled - 1] == chosen[i]:
                units[filled - 1] += 1
            else:
                index[filled] = chosen[i]
                units[filled] = 1
                filled += 1
        squared = np.int64(0)
        for i in range(first, filled):
            squared += units[i] * units[i]
        if squared > 0:
            scale = _scale(int(squared), chosen.shape[0], clip, bits)
            for i in range(first, filled):
                units[i] = np.int64(np.trunc(units[i] * scale))
        start[user + 1] = filled
    return start, index[:filled].copy(), units[:filled].copy()


@numba.njit(nogil=True, cache=True)
def _add(start, index, units, taking_part, into):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    for user in range(start.shape[0] - 1):
        if taking_part[user]:
            for i in range(start[user], start[user + 1]):
                into[index[i]] += units[i]
