"""Greedy forward selection of probes (arXiv 2609.13499, Algorithm B.1), incremental.

At every step each remaining pool item is tried together with the probes already chosen, and the best is kept. Differs
from the plain form (re-route every record over the whole trial bank, solve anew) in how, never in what: a record's k
nearest candidates are all that a new probe can displace, so a trial costs one comparison per record.

With ``w`` the canary's unclipped histogram on the trial probes, the objective is ``J_norm = ||w||^2`` or
``J_mu = w^T Sigma^-1 w``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.compiled import compiled
from coalmine.protocol.errors import BankError, DataError

TIE = 1e-10
"""Values of J_mu within this relative distance of the best are equal: rounding must not choose between them."""


@dataclass(frozen=True)
class ProbeSelection:
    """Chosen probes.

    Attributes:
        picks: (r,) int64 pool indices in the order chosen.
        objectives: (r,) float64, the objective after each step.
    """

    picks: NDArray[np.int64]
    objectives: NDArray[np.float64]

    @property
    def objective(self) -> float:
        """The objective of the whole selection."""
        return float(self.objectives[-1])


def select_probes(
    retained_distance: NDArray[np.float64],
    pool_distance: NDArray[np.float64],
    r: int,
    covariance: NDArray[np.float64] | None = None,
) -> ProbeSelection:
    """Choose r probes from a pool of M.

    The trial bank is the retained bank, then the probes in the order chosen. A record votes for its k nearest
    candidates, ties to the earlier one. Equal objectives go to the lowest pool index: exactly equal for ``J_norm``,
    which is counted in integers; within ``TIE`` for ``J_mu``.

    Args:
        retained_distance: (m, k) float64, squared distances of the canary's records to their k nearest retained
            candidates, ascending.
        pool_distance: (m, M) float64, squared distances of the records to the pool items.
        r: probes to choose, >= 1.
        covariance: (M, M) positive definite pool covariance for ``J_mu`` (clipped votes of auxiliary users over
            retained bank and whole pool, scaled to N, plus noise); ``None`` selects by ``J_norm``.

    Raises:
        BankError: the pool holds fewer than r items.
        DataError: shapes do not fit, a value is not finite, or the covariance is not positive definite.
    """
    records, size = pool_distance.shape
    if not 1 <= r <= size:
        raise BankError(
            f"the pool holds {size} items, but {r} probes are to be chosen", remedy="enlarge the pool or lower r"
        )
    if retained_distance.ndim != 2 or len(retained_distance) != records or retained_distance.size == 0:
        raise DataError(
            f"retained distances have shape {retained_distance.shape}, pool distances {pool_distance.shape}",
            where="greedy selection",
            remedy="(m, k) and (m, M) for the same m records",
        )
    if not (np.isfinite(retained_distance).all() and np.isfinite(pool_distance).all()):
        raise DataError("a distance is not a finite number", where="greedy selection", remedy="check the embeddings")
    by_item = np.ascontiguousarray(pool_distance.T)
    nearest = np.ascontiguousarray(retained_distance)
    total = nearest.size
    if covariance is None:
        picks, scores = _select_norm(nearest, by_item, r)
        return ProbeSelection(picks, scores / total**2)
    if covariance.shape != (size, size) or not np.isfinite(covariance).all():
        raise DataError(
            f"the pool covariance has shape {covariance.shape} or a value that is not finite",
            where="greedy selection",
            remedy=f"({size}, {size}) finite values",
        )
    picks, objectives = _select_mu(nearest, by_item, r, np.ascontiguousarray(covariance))
    if len(picks) < r:
        raise DataError(
            "the pool covariance is not positive definite", where="greedy selection", remedy="add the noise"
        )
    return ProbeSelection(picks, objectives)


@compiled()
def _trial(
    distance: NDArray[np.float64], reach: NDArray[np.float64], last: NDArray[np.int64], lost: NDArray[np.int64]
) -> int:
    """How many records a new candidate gains; ``lost`` (r,) counts what it takes from each chosen probe.

    ``reach`` is each record's distance to its k-th nearest candidate, ``last`` the chosen probe that holds this place,
    -1 for the retained bank.
    """
    lost[:] = 0
    gained = 0
    for record in range(len(distance)):
        if distance[record] < reach[record]:
            gained += 1
            if last[record] >= 0:
                lost[last[record]] += 1
    return gained


@compiled()
def _admit(
    distance: NDArray[np.float64],
    slot: int,
    nearest: NDArray[np.float64],
    owner: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Add a candidate to the trial bank: behind equals, before the farther, the k-th falls out."""
    k = nearest.shape[1]
    for record in range(len(distance)):
        away = distance[record]
        if away < nearest[record, k - 1]:
            if owner[record, k - 1] >= 0:
                counts[owner[record, k - 1]] -= 1
            place = k - 1
            while place > 0 and nearest[record, place - 1] > away:
                nearest[record, place] = nearest[record, place - 1]
                owner[record, place] = owner[record, place - 1]
                place -= 1
            nearest[record, place] = away
            owner[record, place] = slot
            counts[slot] += 1


@compiled()
def _select_norm(
    retained: NDArray[np.float64], by_item: NDArray[np.float64], r: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    nearest = retained.copy()
    k = nearest.shape[1]
    owner = np.full(nearest.shape, -1, np.int64)
    counts, lost = np.zeros(r, np.int64), np.zeros(r, np.int64)
    chosen = np.zeros(len(by_item), np.bool_)
    picks, scores = np.zeros(r, np.int64), np.zeros(r)
    squared = 0
    for step in range(r):
        reach, last = nearest[:, k - 1].copy(), owner[:, k - 1].copy()
        best, best_score = -1, -1
        for item in range(len(by_item)):
            if chosen[item]:
                continue
            gained = _trial(by_item[item], reach, last, lost[:step])
            score = squared + gained * gained
            for slot in range(step):
                score += lost[slot] * (lost[slot] - 2 * counts[slot])
            if score > best_score:
                best, best_score = item, score
        _admit(by_item[best], step, nearest, owner, counts)
        chosen[best] = True
        picks[step], scores[step], squared = best, best_score, best_score
    return picks, scores


@compiled()
def _select_mu(
    retained: NDArray[np.float64], by_item: NDArray[np.float64], r: int, covariance: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """With ``Sigma = L L^T`` over the chosen probes, bordered by item j::

        J = ||L^-1 w||^2 + (w_j - z_j . L^-1 w)^2 / rest_j,    z_j = L^-1 Sigma_j,    rest_j = Sigma_jj - ||z_j||^2

    Choosing j adds one row to L, to L^-1 and to every z; nothing is solved anew. Ends early if some ``rest_j`` is not
    positive.
    """
    size = len(by_item)
    nearest = retained.copy()
    k = nearest.shape[1]
    owner = np.full(nearest.shape, -1, np.int64)
    counts, lost = np.zeros(r, np.int64), np.zeros(r, np.int64)
    chosen = np.zeros(size, np.bool_)
    picks, objectives = np.zeros(r, np.int64), np.zeros(r)
    inverse = np.zeros((r, r))  # columns of L^-1 are rows here: inverse[slot] = L^-1 e_slot
    z = np.zeros((size, r))
    rest = np.diag(covariance).copy()
    values = np.zeros(size)
    moved = np.zeros(r)
    for step in range(r):
        reach, last = nearest[:, k - 1].copy(), owner[:, k - 1].copy()
        whitened = np.zeros(step)
        for slot in range(step):
            for i in range(slot, step):
                whitened[i] += counts[slot] * inverse[slot, i]
        highest = -1.0
        for item in range(size):
            if chosen[item]:
                continue
            if not rest[item] > 0:
                return picks[:step], objectives[:step]
            gained = _trial(by_item[item], reach, last, lost[:step])
            moved[:step] = whitened
            for slot in range(step):
                if lost[slot] > 0:
                    for i in range(slot, step):
                        moved[i] -= lost[slot] * inverse[slot, i]
            value, residual = 0.0, float(gained)
            for i in range(step):
                value += moved[i] * moved[i]
                residual -= z[item, i] * moved[i]
            values[item] = value + residual * residual / rest[item]
            highest = max(highest, values[item])
        best = -1
        for item in range(size):
            if not chosen[item] and values[item] >= highest * (1.0 - TIE):
                best = item
                break
        _admit(by_item[best], step, nearest, owner, counts)
        chosen[best] = True
        picks[step], objectives[step] = best, values[best] / float(nearest.size) ** 2
        pivot = np.sqrt(rest[best])
        for slot in range(step):
            for i in range(slot, step):
                inverse[slot, step] -= z[best, i] * inverse[slot, i] / pivot
        inverse[step, step] = 1.0 / pivot
        for item in range(size):
            if not chosen[item]:
                inner = covariance[best, item]
                for i in range(step):
                    inner -= z[best, i] * z[item, i]
                z[item, step] = inner / pivot
                rest[item] -= z[item, step] ** 2
    return picks, objectives
