"""Gaussian differential privacy: no easier to attack than N(0, 1) against N(mu, 1) (Dong, Roth and Su 2022)."""

from __future__ import annotations

import math

from scipy.special import erfcx, ndtr, ndtri

from coalmine.auditor.bisection import last_true
from coalmine.protocol.errors import StudyError


def delta(mu: float, eps: float) -> float:
    """``delta(eps) = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)``, the smallest delta at this epsilon.

    Args:
        mu: >= 0.
        eps: any real number.

    Raises:
        StudyError: a value out of its range.
    """
    _require_mu(mu)
    if mu == 0:
        return max(0.0, -math.expm1(eps))
    return _delta_at(mu, mu / 2 - eps / mu)


def eps(mu: float, delta: float) -> float:
    """The smallest epsilon >= 0 at which a mu-GDP mechanism is (epsilon, delta)-DP.

    Args:
        mu: >= 0.
        delta: in (0, 1).

    Raises:
        StudyError: a value out of its range.
    """
    _require_mu(mu)
    _require_delta(delta)
    if mu == 0 or _delta_at(mu, mu / 2) <= delta:
        return 0.0
    # delta <= Phi(a) brackets a = mu/2 - eps/mu from below; delta grows with a, and eps = mu (mu/2 - a).
    a = last_true(lambda a: _delta_at(mu, a) <= delta, float(ndtri(delta)), mu / 2)
    return mu * (mu / 2 - a)


def mu(eps: float, delta: float) -> float:
    """The largest mu at which a mu-GDP mechanism is still (eps, delta)-DP.

    Args:
        eps: >= 0, finite.
        delta: in (0, 1).

    Raises:
        StudyError: a value out of its range.
    """
    _require_delta(delta)
    if not (eps >= 0 and math.isfinite(eps)):
        raise StudyError(f"{eps!r} is not allowed", where="eps", remedy="needs a finite epsilon >= 0")
    high = 1.0
    while _delta_at(high, high / 2 - eps / high) <= delta:
        high *= 2
    return last_true(lambda mu: mu == 0 or _delta_at(mu, mu / 2 - eps / mu) <= delta, 0.0, high)


def _delta_at(mu: float, a: float) -> float:
    """delta as a function of ``a = mu/2 - eps/mu``.

    With ``b = a - mu`` the identity ``e^eps = phi(a) / phi(b)`` turns ``e^eps Phi(b)`` into ``phi(a) Mills(-b)``, which
    neither overflows nor cancels, however large mu and eps are.
    """
    density = 0.5 * math.exp(-a * a / 2)
    second = density * float(erfcx((mu - a) / math.sqrt(2)))
    first = density * float(erfcx(-a / math.sqrt(2))) if a < 0 else float(ndtr(a))
    return first - second


def _require_mu(mu: float) -> None:
    if not (mu >= 0 and math.isfinite(mu)):
        raise StudyError(f"{mu!r} is not allowed", where="mu", remedy="needs a finite mu >= 0")


def _require_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise StudyError(f"{delta!r} is not allowed", where="delta", remedy="needs a probability in (0, 1)")
