"""What the accounting promises for repeated releases of a Poisson-subsampled Gaussian, in two readings.

* Opacus' PRV accountant (Gopi, Lee and Wutschitz 2021) with its defaults, the figure that papers print. Its error bound
  of 0.01 is included, so it lies a little above the truth.
* dp-accounting's privacy-loss distributions, rounded optimistically and pessimistically: a bracket around the truth.
"""

from __future__ import annotations

import math
import warnings
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coalmine.protocol.errors import StudyError
from coalmine.protocol.privacy import Adjacency, Claim, Mechanism, PrivacyUnit, ThreatModel

_INTERVAL = 1e-4
"""Width of a cell of the privacy loss for ordinary noise; wider in proportion where losses spread further."""
_ORDINARY_SPREAD = 10.0
LEAST_ACCOUNTED = 0.02
"""The least noise multiplier that there is a claim for."""
_MOST_CELLS = 2**25
"""Of Opacus' accountant, whose memory grows with them; ordinary claims need fewer than a million."""
_LARGEST_EPSILON = 700.0
"""Beyond it e^eps overflows float64 and dp-accounting's bracket no longer holds the truth."""


@cache
def prv_epsilon(q: float, sigma: float, rounds: int, delta: float) -> float:
    """Epsilon of ``rounds`` releases by Opacus' ``PRVAccountant`` with its default error bounds.

    Returns:
        epsilon; not a number where the accountant's floating point breaks down (sigma below about 0.04, delta near the
        smallest numbers), since what it answers there can be far below the truth, or where it would need more memory
        than machines have (many rounds with little noise).

    Raises:
        StudyError: a value out of its range.
    """
    _check(q, sigma, rounds, delta)
    from opacus.accountants import PRVAccountant

    accountant = PRVAccountant()
    accountant.history = [(sigma, q, rounds)]
    _bound_memory(accountant)
    # Infinite intermediate values are part of its method; invalid ones are not, and would be passed on in silence.
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="raise"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Optimal order is the (largest|smallest) alpha")
        try:
            return max(0.0, float(accountant.get_epsilon(delta)))
        except (FloatingPointError, RuntimeError, ValueError):
            return math.nan


def _bound_memory(accountant: Any) -> None:
    """Its domain is known before any of it is stored."""
    domain_of = accountant._get_domain

    def bounded(**conditions: Any) -> Any:
        domain = domain_of(**conditions)
        if domain.size > _MOST_CELLS:
            raise RuntimeError(f"{domain.size} cells")
        return domain

    accountant._get_domain = bounded


@cache
def pld_epsilon(q: float, sigma: float, rounds: int, delta: float) -> tuple[float, float]:
    """Optimistic and pessimistic epsilon of ``rounds`` releases under add/remove adjacency.

    Returns:
        a bracket around the truth; (700, infinity) where the truth is above 700.

    Raises:
        StudyError: a value out of its range.
    """
    _check(q, sigma, rounds, delta)
    low, high = (
        float(_pld(q, sigma, rounds, pessimistic).get_epsilon_for_delta(delta)) for pessimistic in (False, True)
    )
    return (low, high) if high <= _LARGEST_EPSILON else (min(low, _LARGEST_EPSILON), math.inf)


def pld_deltas(
    q: float, sigma: float, rounds: int, epsilons: ArrayLike, *, cell: float = _INTERVAL
) -> NDArray[np.float64]:
    """(n,) pessimistic delta at each epsilon: the profile of the claim, for tests of its whole trade-off curve.

    Args:
        cell: width of a cell of the privacy loss; wider cells are faster and give larger deltas, which stay valid.

    Raises:
        StudyError: a value out of its range.
    """
    _check(q, sigma, rounds, 0.5)
    distribution = _pld(q, sigma, rounds, True, cell)
    return np.asarray(distribution.get_delta_for_epsilon(np.asarray(epsilons, float)), float)


def claim(
    mechanism: Mechanism,
    rounds: int,
    unit: PrivacyUnit = PrivacyUnit.USER,
    threat_model: ThreatModel = ThreatModel.RELEASE_ONLY,
) -> Claim:
    """The promise that audits of ``rounds`` releases are compared with.

    ``eps_prv`` is not a number where Opacus' accountant breaks down (see :func:`prv_epsilon`), and ``eps_pld_upper`` is
    infinite above 700 (see :func:`pld_epsilon`).

    Against whoever sees cohorts (``ThreatModel.COHORT``) drawing participation hides nothing: q counts as 1, and a
    user's data are compared with no data. That a user takes part has no finite epsilon then.

    Raises:
        StudyError: a value out of its range.
    """
    seen = threat_model is ThreatModel.COHORT
    q = 1.0 if seen else mechanism.q
    knobs = q, mechanism.sigma, rounds, mechanism.delta
    lower, upper = pld_epsilon(*knobs)
    return Claim(
        eps_prv=prv_epsilon(*knobs),
        eps_pld_lower=lower,
        eps_pld_upper=upper,
        delta=mechanism.delta,
        q=q,
        sigma=mechanism.sigma,
        rounds=rounds,
        adjacency=Adjacency.ZERO_OUT if seen else Adjacency.ADD_REMOVE,
        unit=unit,
        threat_model=threat_model,
    )


def _pld(q: float, sigma: float, rounds: int, pessimistic: bool, cell: float = _INTERVAL) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    spread = 8 / sigma + 1 / (2 * sigma**2)
    one = pld.from_gaussian_mechanism(
        sigma,
        sampling_prob=q,
        pessimistic_estimate=pessimistic,
        value_discretization_interval=cell * max(1.0, spread / _ORDINARY_SPREAD),
        use_connect_dots=pessimistic,
    )
    return one.self_compose(rounds)


def _check(q: float, sigma: float, rounds: int, delta: float) -> None:
    Mechanism(q=q, sigma=sigma, delta=delta)
    if sigma < LEAST_ACCOUNTED:
        raise StudyError(
            f"{sigma!r} is too little noise to account for",
            where="privacy.sigma",
            remedy=f"needs at least {LEAST_ACCOUNTED}",
        )
    if rounds < 1:
        raise StudyError(f"{rounds} rounds", where="rounds", remedy="needs at least one release")
