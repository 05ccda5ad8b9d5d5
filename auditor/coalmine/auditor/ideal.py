"""The epsilon of a Poisson-subsampled Gaussian in closed form: a canary that nobody else disturbs."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from coalmine.protocol.errors import StudyError


def ideal_epsilon(mu: float, q: float, delta: float) -> float:
    """Smallest epsilon >= 0 at ``delta``, in both directions, between ``N(0,1)`` and ``(1-q) N(0,1) + q N(mu,1)``.

    With D(kappa) the Gaussian mechanism's hockey-stick divergence (Balle and Wang 2018), the added user's direction is
    ``q D(kappa)`` at ``exp(eps) = 1 - q + q exp(kappa)`` and the removed user's ``q D(kappa) exp(eps - kappa)`` at
    ``exp(-eps) = 1 - q + q exp(-kappa)``. Relative accuracy about 1e-12.

    Args:
        mu: distance of the means in units of the noise, >= 0.
        q: participation rate in (0, 1].
        delta: in (0, 1).

    Raises:
        StudyError: a value out of its range.
    """
    for key, value, holds in (
        ("mu", mu, 0 <= mu < math.inf),
        ("q", q, 0 < q <= 1),
        ("delta", delta, 0 < delta < 1),
    ):
        if not holds:
            raise StudyError(f"{value!r} is not allowed", where=key, remedy="mu >= 0, q in (0, 1], delta in (0, 1)")
    if mu == 0:
        return 0.0

    def added(kappa: float) -> float:
        return q * _gaussian_delta(mu, kappa) - delta

    def removed(kappa: float) -> float:
        return q * _gaussian_delta(mu, kappa) / (q + (1 - q) * math.exp(min(kappa, 700.0))) - delta

    kappa_added, kappa_removed = _largest_root(added, mu), _largest_root(removed, mu)
    return max(_log_mix(q, kappa_added), -_log_mix(q, -kappa_removed))


def _gaussian_delta(mu: float, kappa: float) -> float:
    """D(kappa) = Phi(mu/2 - kappa/mu) - exp(kappa) Phi(-mu/2 - kappa/mu)."""
    return float(ndtr(mu / 2 - kappa / mu) - math.exp(kappa + float(log_ndtr(-mu / 2 - kappa / mu))))


def _log_mix(q: float, kappa: float) -> float:
    """log(1 - q + q exp(kappa))."""
    if kappa <= 1:
        return math.log1p(q * math.expm1(kappa))
    return kappa + math.log(q + (1 - q) * math.exp(-kappa))


def _largest_root(excess: Callable[[float], float], mu: float) -> float:
    """Where a decreasing function crosses zero on [0, inf), 0 where it starts below."""
    if excess(0.0) <= 0:
        return 0.0
    high = mu
    while excess(high) > 0:
        high *= 2
    return float(brentq(excess, 0.0, high, xtol=1e-14, rtol=1e-14))
