"""Bring your own votes: the audit of one canary from embeddings alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.case import Array, Case, Users, check_case
from coalmine.auditor.design import squared_distances
from coalmine.auditor.exact import exact_epsilon
from coalmine.auditor.greedy import select_probes
from coalmine.auditor.moments import moments
from coalmine.auditor.score import score
from coalmine.protocol.route import route, route_retained
from coalmine.protocol.tally import tally
from coalmine.protocol.vote import grid_bits


@dataclass(frozen=True)
class ArraysResult:
    """What the audit of a case found.

    Attributes:
        greedy_norm, greedy_mu: (r,) pool indices in the order chosen; all that follows has ``greedy_mu`` as probes.
        J_norm, J_mu: final objective of each selection.
        canary_routes: (n, k) bank indices per record, nearest first.
        canary_h: (p,) the canary's unclipped histogram.
        m0: (r,) mean of the release on the probes without the canary.
        mu_eff: separation of the score.
        eps_exact: exact epsilon over the test users, a valid lower bound; at most ``eps_exact_error`` below the truth.
    """

    greedy_norm: tuple[int, ...]
    greedy_mu: tuple[int, ...]
    J_norm: float
    J_mu: float
    canary_routes: tuple[tuple[int, ...], ...]
    canary_h: tuple[float, ...]
    m0: tuple[float, ...]
    mu_eff: float
    eps_exact: float
    eps_exact_error: float


def audit_arrays(entries: Mapping[str, Any]) -> ArraysResult:
    """Choose probes both ways, then audit the canary with those chosen on separation.

    Args:
        entries: as described in ``case``.

    Raises:
        InputError: an entry that cannot be used, with its name.
    """
    case = check_case(entries)
    mechanism, positions, population = case.mechanism, case.probe_positions, len(case.test)
    retained = np.delete(case.bank, positions, axis=0)
    own = route_retained(case.canary, case.bank, mechanism.votes_per_record, positions)
    to_pool = squared_distances(case.canary, case.pool)
    on_pool = np.arange(len(retained), len(retained) + len(case.pool))
    traffic = _votes(case, case.auxiliary, np.concatenate([retained, case.pool]), on_pool)
    by_norm = select_probes(own.distance, to_pool, len(positions))
    by_mu = select_probes(own.distance, to_pool, len(positions), moments(traffic, population, mechanism).covariance)

    bank = case.bank.copy()
    bank[positions] = case.pool[by_mu.picks]
    routes = route(case.canary, bank, mechanism.votes_per_record).index
    canary = Users(case.canary, np.array([0, len(case.canary)]))
    (vote,) = _votes(case, canary, bank, positions)
    background = moments(_votes(case, case.auxiliary, bank, positions), population, mechanism)
    designed = score(background, vote, mechanism)
    epsilon = exact_epsilon(
        designed.project(_votes(case, case.test, bank, positions)),
        designed.signal,
        designed.noise_std,
        mechanism.q,
        mechanism.delta,
    )
    return ArraysResult(
        greedy_norm=tuple(by_norm.picks.tolist()),
        greedy_mu=tuple(by_mu.picks.tolist()),
        J_norm=by_norm.objective,
        J_mu=by_mu.objective,
        canary_routes=tuple(map(tuple, routes.tolist())),
        canary_h=tuple((np.bincount(routes.ravel(), minlength=len(bank)) / routes.size).tolist()),
        m0=tuple(background.mean.tolist()),
        mu_eff=designed.mu_eff,
        eps_exact=epsilon.lower,
        eps_exact_error=epsilon.error,
    )


def _votes(case: Case, users: Users, bank: Array, coordinates: NDArray[np.int64]) -> Array:
    """(users, coordinates) clipped votes."""
    routes = route(users.records, bank, case.mechanism.votes_per_record)
    bits = grid_bits(len(case.test), case.mechanism)
    return tally(routes, users.offsets, case.mechanism, bits).on(coordinates, len(bank))
