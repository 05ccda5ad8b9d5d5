"""From facts about many samples' gradients to their signatures: the batched form of ``protocol.dpsgd.signatures``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from coalmine.protocol.dpsgd.signatures import Signature

Array = NDArray[np.float64]


def scores(
    kind: Signature,
    *,
    logits: Array,
    labels: NDArray[np.int64],
    norm: Array,
    largest: Array,
    power_sums: Array,
    dots: Array,
    direction_norms: Array,
    parameters: int,
    clip: float,
) -> Array:
    """(R, n) signatures; equal to the plain definition up to rounding.

    Args:
        logits: (R, n, c). labels: (n,). norm, largest: (R, n). power_sums: (R, n, 4).
        dots: (R, n, m) with the last update, the window of updates, or the public directions, as ``kind`` needs;
            direction_norms: (R, m).
    """
    match kind:
        case Signature.GRAD_L2:
            return norm
        case Signature.GRAD_LINF:
            return largest
        case Signature.CLIPPED_L2:
            return np.asarray(np.minimum(norm, clip), np.float64)
        case Signature.CLIPPED_LINF:
            shrink = np.divide(clip, norm, out=np.ones(norm.shape), where=norm > 0)
            return np.asarray(largest * np.minimum(1.0, shrink), np.float64)
        case Signature.GRAD_COSINE:
            return 1.0 - (_cosines(dots, norm, direction_norms)[..., -1] if dots.shape[2] else 0.0 * norm)
        case Signature.DIRECTION_UNIQUENESS:
            nearest = np.abs(_cosines(dots, norm, direction_norms)).max(axis=2, initial=0.0)
            return np.asarray(1.0 - nearest, np.float64)
        case Signature.PROJECTION_VARIABILITY:
            return np.asarray(dots.var(axis=2), np.float64)
        case Signature.GRAD_KURTOSIS:
            return _kurtosis(power_sums / parameters)
        case Signature.PREDICTION_ENTROPY:
            log_p = log_softmax(logits, axis=2)
            entropy: Array = -(np.exp(log_p) * log_p).sum(axis=2)
            return entropy
        case Signature.PREDICTION_MARGIN:
            own = _own(logits, labels)
            others = np.where(np.arange(logits.shape[2]) == labels[:, None], -np.inf, logits)
            return np.asarray(others.max(axis=2), np.float64) - own
        case Signature.LOSS:
            return -_own(log_softmax(logits, axis=2), labels)


def _own(values: Array, labels: NDArray[np.int64]) -> Array:
    return np.take_along_axis(values, labels[None, :, None], axis=2)[..., 0]


def _cosines(dots: Array, norm: Array, direction_norms: Array) -> Array:
    lengths = norm[..., None] * direction_norms[:, None, :]
    return np.divide(dots, lengths, out=np.zeros_like(dots), where=lengths > 0)


def _kurtosis(moments: Array) -> Array:
    """Excess kurtosis from (..., 4) raw moments; 0 where the coordinates do not vary beyond rounding."""
    first, second, third, fourth = np.moveaxis(moments, -1, 0)
    variance = second - first**2
    central = fourth - 4 * first * third + 6 * first**2 * second - 3 * first**4
    varies = variance > 1e-12 * second
    kurtosis: Array = np.divide(central, variance**2, out=np.full_like(central, 3.0), where=varies)
    return kurtosis - 3.0
