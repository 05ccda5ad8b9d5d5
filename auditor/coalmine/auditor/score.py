"""The likelihood-ratio score of one release: linear in the histogram, then mixed over hidden participation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from coalmine.auditor.moments import Moments
from coalmine.protocol.errors import DataError
from coalmine.protocol.privacy import Mechanism


@dataclass(frozen=True)
class Score:
    """``ell = T - offset`` with ``T = a^T Y_P`` (paper, section 2.1 and E.3).

    Attributes:
        direction: (r,) float64, ``a = Sigma^-1 v``.
        offset: ``a^T (m0 + v/2)``.
        mu_eff: ``sqrt(v^T Sigma^-1 v)``, the separation of the two hypotheses when the canary takes part.
        q: participation rate, in (0, 1].
        noise_std: tau, standard deviation of the mechanism's noise in T, ``sigma C ||a||``.
    """

    direction: NDArray[np.float64]
    offset: float
    mu_eff: float
    q: float
    noise_std: float

    @property
    def signal(self) -> float:
        """``a^T v = mu_eff^2``: how far a participating canary moves T."""
        return self.mu_eff**2

    def project(self, votes: NDArray[np.float64]) -> NDArray[np.float64]:
        """``s_u = a^T c_u``: (n,) float64 for (n, r) votes."""
        return np.asarray(votes @ self.direction, dtype=np.float64)

    def ell(self, releases: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log-likelihood ratio of a participating canary against none: (n,) for (n, r) values of Y_P."""
        return self.project(releases) - self.offset

    def ell_mix(self, releases: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log-likelihood ratio of an eligible canary against none: (n,) for (n, r); it adds up over rounds (E.5)."""
        return self.mix(self.ell(releases))

    def mix(self, ell: NDArray[np.float64]) -> NDArray[np.float64]:
        """``log((1-q) + q exp(ell))`` elementwise, without overflow."""
        log_absent = math.log1p(-self.q) if self.q < 1 else -math.inf
        return np.asarray(np.logaddexp(log_absent, math.log(self.q) + ell), dtype=np.float64)

    def mix_threshold(self, threshold: float) -> float:
        """The threshold on ``ell_mix`` that makes the same decisions as ``T > threshold``."""
        return float(self.mix(np.asarray(threshold - self.offset)))

    def linear_threshold(self, mix_threshold: float) -> float:
        """The threshold on T that makes the same decisions as ``ell_mix > mix_threshold``.

        ``-inf`` where every release exceeds it: ``ell_mix`` is always above ``log(1-q)``.
        """
        if mix_threshold > 1:
            ratio = math.log1p(-(1 - self.q) * math.exp(-mix_threshold)) + mix_threshold - math.log(self.q)
        else:
            excess = math.expm1(mix_threshold) / self.q
            ratio = math.log1p(excess) if excess > -1 else -math.inf
        return ratio + self.offset


def score(background: Moments, canary_vote: NDArray[np.float64], mechanism: Mechanism) -> Score:
    """The score of a canary against a background, by Cholesky solve.

    Args:
        background: moments of Y_P without the canary, estimated from auxiliary users.
        canary_vote: (r,) float64, clipped vote v of the canary on the audited coordinates; may be zero.
        mechanism: q, sigma and C.

    Raises:
        DataError: shapes differ, or the covariance is not positive definite.
    """
    if canary_vote.shape != background.mean.shape:
        raise DataError(
            f"the canary's vote has shape {canary_vote.shape}, the moments {background.mean.shape}",
            where="score",
            remedy="both on the same coordinates",
        )
    try:
        factor = cho_factor(background.covariance, lower=True)
    except np.linalg.LinAlgError:
        raise DataError(
            "the covariance of the background is not positive definite",
            where="score",
            remedy="sigma C must not vanish against the votes",
        ) from None
    direction = np.asarray(cho_solve(factor, canary_vote), dtype=np.float64)
    return Score(
        direction=direction,
        offset=float(direction @ (background.mean + canary_vote / 2)),
        mu_eff=math.sqrt(max(0.0, float(direction @ canary_vote))),
        q=mechanism.q,
        noise_std=mechanism.noise_std * float(np.linalg.norm(direction)),
    )
