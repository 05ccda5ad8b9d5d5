"""From a canary and a pool to the probes an attack plants. Public data only: no test user has a say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.attacks import Attack, Selection
from coalmine.auditor.greedy import select_probes
from coalmine.auditor.moments import moments
from coalmine.auditor.public import PublicUsers
from coalmine.protocol.errors import BankError
from coalmine.protocol.route import route_retained


def probe_positions(bank_size: int, probes: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(r,) ascending bank positions that probes will replace, drawn before any design."""
    return np.sort(rng.choice(bank_size, probes, replace=False)).astype(np.int64)


def choose_probes(
    attack: Attack,
    canary: NDArray[np.float32],
    pool: NDArray[np.float32],
    sources: Sequence[int],
    candidates: NDArray[np.float32],
    positions: NDArray[np.int64],
    auxiliary: PublicUsers,
    eligible: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Which pool items an attack plants, in the order of ``positions``.

    Args:
        canary: (m, d) embedded records. pool: (M, d), for copies the records themselves.
        sources: for each pool item the canary record it came from (used where probes are spread over records).
        candidates: (p, d) the base bank. auxiliary: gives the pool covariance.
        eligible: N, to which auxiliary moments are scaled.

    Returns:
        (r,) pool indices.

    Raises:
        BankError: the pool holds fewer than r items.
    """
    r = len(positions)
    if len(pool) < r:
        raise BankError(f"the pool holds {len(pool)} texts, {r} probes are needed", where=f"attack {attack.name}")
    match attack.selection:
        case Selection.ALL:
            return np.arange(r)
        case Selection.UNIFORM:
            return rng.choice(len(pool), r, replace=False)
        case Selection.SPREAD:
            return _spread(sources, r, rng)
        case Selection.NORM | Selection.MU:
            k = auxiliary.mechanism.votes_per_record
            nearest = route_retained(canary, candidates, k, positions).distance
            covariance = None
            if attack.selection is Selection.MU:
                votes = auxiliary.votes_on_pool(pool, len(candidates))
                covariance = moments(votes, eligible, auxiliary.mechanism).covariance
            return select_probes(nearest, squared_distances(canary, pool), r, covariance).picks
        case Selection.NONE:
            return np.empty(0, np.int64)


def squared_distances(records: NDArray[np.floating], items: NDArray[np.floating]) -> NDArray[np.float64]:
    """(m, M) squared Euclidean distances, summed in the order that votes use."""
    wide = items.astype(np.float64)
    rows = []
    for record in records.astype(np.float64):
        difference = record - wide
        rows.append(np.cumsum(difference * difference, axis=1)[:, -1])
    return np.array(rows).reshape(len(records), len(items))


def _spread(sources: Sequence[int], r: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """One random item of every record in turn, until r are chosen."""
    turns: dict[int, int] = {}
    keyed: list[tuple[int, int, int]] = []
    for item in rng.permutation(len(sources)):
        turn = turns.get(sources[item], 0)
        turns[sources[item]] = turn + 1
        keyed.append((turn, len(keyed), int(item)))
    return np.array([item for _, _, item in sorted(keyed)[:r]])
