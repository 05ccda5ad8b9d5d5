"""Routing at speed: the k nearest candidates of many records.

Differs from ``vote.nearest_candidates`` in how, never in what: one single-precision matrix product finds every
candidate that could be among the k nearest given its rounding error bound, and those few are ranked by the same float64
distance, summed in the same fixed order, ties to the lowest index. So the result does not depend on block size, threads
or the matrix library.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from coalmine.protocol.compiled import compiled
from coalmine.protocol.errors import BankError, DataError, ModelError

_BLOCK = 512
_TILE = 1024
"""Records and candidates per matrix product: its scores stay in a core's own cache until they were scanned."""
_STRIDE = 64
_SHORTLISTED = 1 << 24
"""Room for shortlists, of a size that only ties at every candidate would fill."""


@dataclass(frozen=True)
class Routes:
    """Where records vote.

    Attributes:
        index: (n, k) int32 bank indices, nearest first.
        distance: (n, k) float64 squared Euclidean distances.
    """

    index: NDArray[np.int32]
    distance: NDArray[np.float64]


def route(
    records: NDArray[np.floating],
    candidates: NDArray[np.floating],
    k: int,
    *,
    block: int | None = None,
    threads: int = 1,
) -> Routes:
    """The k nearest candidates of each record.

    Args:
        records: (n, d), candidates: (p, d), both float32 or float64, rows close to unit length.
        block: records per matrix product; threads: that work on records of their own. Performance only.

    Raises:
        BankError: fewer than k candidates. ModelError: a value that is not finite. DataError: dimensions differ.
    """
    floor = np.full((len(records), k), np.inf)
    nobody = np.full((len(records), k), -1, np.int32)
    if len(candidates) < k:
        raise BankError(f"{len(candidates)} candidates, but each record votes for {k}", remedy="enlarge the bank")
    return _merge(
        Routes(nobody, floor), records, candidates, np.arange(len(candidates), dtype=np.int32), block, threads
    )


def reroute(
    retained: Routes,
    records: NDArray[np.floating],
    probes: NDArray[np.floating],
    positions: NDArray[np.integer],
    *,
    block: int | None = None,
    threads: int = 1,
) -> Routes:
    """Routes over a bank whose ``positions`` hold ``probes``, given the routes over all other candidates.

    Args:
        retained: routes over the bank without ``positions``, with indices of the full bank.
        probes: (r, d). positions: (r,) ascending bank indices of the probes.
    """
    return _merge(retained, records, probes, np.ascontiguousarray(positions, np.int32), block, threads)


def route_retained(
    records: NDArray[np.floating],
    candidates: NDArray[np.floating],
    k: int,
    positions: NDArray[np.integer],
    *,
    threads: int = 1,
) -> Routes:
    """Routes over the bank without ``positions``, with indices of the full bank."""
    kept = np.setdiff1d(np.arange(len(candidates)), positions)
    routes = route(records, candidates[kept], k, threads=threads)
    return Routes(kept.astype(np.int32)[routes.index], routes.distance)


def _merge(
    routes: Routes,
    records: NDArray[np.floating],
    candidates: NDArray[np.floating],
    positions: NDArray[np.int32],
    block: int | None,
    threads: int,
) -> Routes:
    index, distance = routes.index.copy(), routes.distance.copy()
    n, p = len(records), len(candidates)
    if n == 0 or p == 0:
        return Routes(index, distance)
    if records.shape[1] != candidates.shape[1]:
        raise DataError(
            f"records have {records.shape[1]} dimensions and candidates {candidates.shape[1]}",
            remedy="embed both with one encoder",
        )
    exact_records, exact_candidates = _finite(records), _finite(candidates)
    single = np.ascontiguousarray(candidates, np.float32)
    half_norms = (0.5 * np.einsum("ij,ij->i", exact_candidates, exact_candidates, dtype=np.float64)).astype(np.float32)
    slack = _slack(exact_records, exact_candidates)
    rows = block or max(1, min(_BLOCK, _SHORTLISTED // p))

    def work(start: int, stop: int) -> None:
        seen = np.empty((min(rows, stop - start), min(_TILE, p)), np.float32)
        short = best, _, _, count = _shortlists(len(seen), p, index.shape[1])
        for first in range(start, stop, rows):
            part = slice(first, min(first + rows, stop))
            found = exact_records[part].astype(np.float32, copy=False)
            _known(found, index[part], distance[part], best, count)
            for left in range(0, p, _TILE):
                tile = slice(left, min(left + _TILE, p))
                scores = seen.reshape(-1)[: len(found) * (tile.stop - left)].reshape(len(found), -1)
                np.matmul(found, single[tile].T, out=scores)
                _scan(scores, half_norms[tile], slack, left, *short)
            _rank(slack, exact_records[part], exact_candidates, positions, *short, index[part], distance[part])

    if threads == 1:
        work(0, n)
    else:  # one thread a product: threads of one product would wait for each other, and go on waiting during the scan
        edges = np.linspace(0, n, threads + 1).astype(int).tolist()
        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, edges[:-1], edges[1:]))
    return Routes(index, distance)


def _finite(array: NDArray[np.floating]) -> NDArray[np.floating]:
    kept = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
    if not np.isfinite(kept).all():
        row = int(np.flatnonzero(~np.isfinite(kept).all(axis=1))[0])
        raise ModelError(
            "an embedding holds a value that is not finite", where=f"row {row}", remedy="check the encoder"
        )
    return np.ascontiguousarray(kept)


def _slack(records: NDArray[np.floating], candidates: NDArray[np.floating]) -> np.float32:
    """Twice the largest error of a single-precision score: inner products of length d are within (d + 8) 2^-24 of the
    truth times both norms (Higham 2002, section 3.1, with room for the casts and the half norm)."""
    reach = max(_largest_norm(records), _largest_norm(candidates))
    return np.float32(2.0 * (records.shape[1] + 8) * 2.0**-24 * max(reach, 1e-30) ** 2 * 1.01)


def _largest_norm(array: NDArray[np.floating]) -> float:
    return float(np.sqrt(np.einsum("ij,ij->i", array, array).max()))


def _shortlists(
    n: int, p: int, k: int
) -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.float32], NDArray[np.int64]]:
    """Room for n records' (n, k) best scores so far, highest first, and for who of p candidates may yet be among the k
    nearest: (n, p) places and their scores, of which the first (n,) counts are taken."""
    return np.empty((n, k), np.float32), np.empty((n, p), np.int32), np.empty((n, p), np.float32), np.empty(n, np.int64)


@compiled()
def _distances(record, candidates, chosen, found, away):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Squared distances to ``chosen[:found]`` into ``away``, each summed in index order.

    Four at a time: a sum in a fixed order waits for its last addition, and the processor has room for three more.
    """
    for first in range(0, found, 4):
        last = found - 1
        a, b = candidates[chosen[first]], candidates[chosen[min(first + 1, last)]]
        c, d = candidates[chosen[min(first + 2, last)]], candidates[chosen[min(first + 3, last)]]
        to_a = to_b = to_c = to_d = 0.0
        for i in range(record.shape[0]):
            x = np.float64(record[i])
            off_a, off_b = x - np.float64(a[i]), x - np.float64(b[i])
            off_c, off_d = x - np.float64(c[i]), x - np.float64(d[i])
            to_a += off_a * off_a
            to_b += off_b * off_b
            to_c += off_c * off_c
            to_d += off_d * off_d
        away[min(first + 3, last)] = to_d
        away[min(first + 2, last)] = to_c
        away[min(first + 1, last)] = to_b
        away[first] = to_a


@compiled()
def _insert(index, distance, at, away):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Put candidate ``at`` into one record's list, sorted by (distance, index)."""
    k = index.shape[0]
    if away > distance[k - 1] or (away == distance[k - 1] and at > index[k - 1] and index[k - 1] >= 0):
        return
    slot = k - 1
    while slot > 0 and (
        distance[slot - 1] > away or (distance[slot - 1] == away and (index[slot - 1] > at or index[slot - 1] < 0))
    ):
        index[slot] = index[slot - 1]
        distance[slot] = distance[slot - 1]
        slot -= 1
    index[slot] = at
    distance[slot] = away


@compiled()
def _known(records, index, distance, best, count):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Start shortlists from the scores of known candidates: (||x||^2 - distance) / 2."""
    for row in range(records.shape[0]):
        squared = np.float32(0.0)
        if index[row, 0] >= 0:
            for i in range(records.shape[1]):
                squared += records[row, i] * records[row, i]
        count[row] = 0
        for slot in range(index.shape[1]):
            known = index[row, slot] >= 0
            best[row, slot] = np.float32(0.5) * (squared - np.float32(distance[row, slot])) if known else -np.inf


@compiled()
def _scan(scores, half_norms, slack, left, best, place, kept, count):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Shortlist the candidates of one tile, the first of which is candidate ``left``."""
    least = half_norms.min()
    for row in range(scores.shape[0]):
        count[row] = _scan_row(
            scores[row], half_norms, least, slack, left, best[row], place[row], kept[row], count[row]
        )


@compiled()
def _scan_row(score, half_norms, least, slack, left, best, place, kept, count):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    p = score.shape[0]
    k = best.shape[0]
    floor = best[k - 1] - slack
    for start in range(0, p, _STRIDE):
        reached = False
        if start + _STRIDE <= p:  # no branch inside and a fixed length: vector instructions
            for j in range(_STRIDE):
                reached |= score[start + j] - least >= floor
            if not reached:
                continue
        for j in range(start, min(start + _STRIDE, p)):
            value = score[j] - half_norms[j]
            if value >= floor:
                place[count] = left + j
                kept[count] = value
                count += 1
                if value > best[k - 1]:
                    slot = k - 1
                    while slot > 0 and best[slot - 1] < value:
                        best[slot] = best[slot - 1]
                        slot -= 1
                    best[slot] = value
                    floor = best[k - 1] - slack
    return count


@compiled()
def _rank(slack, records, candidates, positions, best, place, score, count, index, distance):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Order what is left of each shortlist by exact distance."""
    away = np.empty(place.shape[1])
    k = index.shape[1]
    for row in range(records.shape[0]):
        floor = best[row, k - 1] - slack
        short = place[row]
        left = 0
        for i in range(count[row]):
            if score[row, i] >= floor:
                short[left] = short[i]
                left += 1
        _distances(records[row], candidates, short, left, away)
        for i in range(left):
            _insert(index[row], distance[row], positions[short[i]], away[i])
