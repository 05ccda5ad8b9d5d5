"""What other users contribute to the audited coordinates: mean and covariance of the release without the canary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.errors import DataError
from coalmine.protocol.privacy import Mechanism


@dataclass(frozen=True)
class Moments:
    """First two moments of ``Y_P`` when the canary is absent.

    Attributes:
        mean: (r,) float64, m0.
        covariance: (r, r) float64, Sigma; at least ``(sigma C)^2`` in every direction.
    """

    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]


def moments(votes: NDArray[np.float64], population: int, mechanism: Mechanism) -> Moments:
    """Moments of N users' Poisson-sampled votes plus noise, estimated from a sample of users.

    ``m0 = q N mean(c_u)`` and ``Sigma = q (1-q) (N/n) sum c_u c_u^T + (sigma C)^2 I`` (arXiv 2609.13499, E.1).

    Args:
        votes: (n, r) float64, clipped votes c_u of n sampled users on the audited coordinates; n = 0 only for N = 0.
        population: N >= 0, eligible users that the sample stands for.
        mechanism: q, sigma and C.

    Raises:
        DataError: no user, or a vote that is not finite.
    """
    if votes.ndim != 2 or (len(votes) == 0 and population > 0):
        raise DataError(
            f"votes have shape {votes.shape}", where="moments", remedy="(users, coordinates), one user or more"
        )
    if not np.isfinite(votes).all():
        raise DataError("a vote is not a finite number", where="moments", remedy="votes come from finite embeddings")
    q, scale = mechanism.q, population / max(1, len(votes))
    mean = q * scale * votes.sum(axis=0)
    covariance = q * (1 - q) * scale * (votes.T @ votes)
    covariance[np.diag_indices_from(covariance)] += mechanism.noise_std**2
    return Moments(mean, covariance)
