"""One DP-SGD step in its plain form (Abadi et al. 2016): clip each sample, sum, one Gaussian, a public denominator."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.dpsgd.mechanism import DpSgd
from coalmine.protocol.errors import ContributionError

Array = NDArray[np.float64]


def clip(gradient: Array, bound: float) -> Array:
    """One sample's gradient, scaled down to L2 norm ``bound`` where it is longer."""
    norm = float(np.linalg.norm(gradient))
    return gradient * min(1.0, bound / norm) if norm > 0 else gradient


def clipped_sum(gradients: Array, bound: float) -> Array:
    """(P,) sum of clipped per-sample gradients.

    Args:
        gradients: (b, P), one row per sample of the batch; b = 0 gives the zero sum.
    """
    total: Array = np.zeros(gradients.shape[1])
    for gradient in gradients:
        total += clip(gradient, bound)
    return total


def noised_gradient(total: Array, mechanism: DpSgd, rng: np.random.Generator) -> Array:
    """``(1/B) * (total + Normal(0, (sigma C)^2 I))``: what the optimiser, and the attacker, may see.

    Args:
        total: (P,) sum of clipped gradients over all clients.
        rng: drawn from exactly once per coordinate, so that every way of computing the sum meets the same noise.

    Raises:
        ContributionError: the sum is not finite.
    """
    return with_noise(total, mechanism, rng.standard_normal(len(total)))


def with_noise(total: Array, mechanism: DpSgd, normal: Array) -> Array:
    """``noised_gradient`` from numbers already drawn, of one model or of many at once.

    Args:
        total: (..., P). normal: of the same shape, standard normal; overwritten.

    Raises:
        ContributionError: the sum is not finite.
    """
    if not np.isfinite(total).all():
        raise ContributionError(
            "the sum of clipped gradients is not a number",
            where="step",
            remedy="lower the learning rate; a sample whose gradient is not finite must be refused where it arises",
        )
    normal *= mechanism.noise_std
    normal += total
    normal /= mechanism.batch_size
    return normal


def private_gradient(gradients: Array, mechanism: DpSgd, rng: np.random.Generator) -> Array:
    """(P,) the noised gradient of one batch given its (b, P) per-sample gradients."""
    return noised_gradient(clipped_sum(gradients, mechanism.clip), mechanism, rng)
