"""The eleven sample signatures in their plain form (arXiv 2608.28934, appendix D). Higher means more outlying.

A signature may look at its own sample, at privatised state (the model, earlier noised updates) and at public
randomness. It never compares a sample with other samples: that would break the proof of the filter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

Array = NDArray[np.float64]


class Signature(StrEnum):
    """Which quantity ranks the samples; g is the sample's unclipped gradient."""

    GRAD_L2 = "grad_l2"
    """||g||_2"""
    GRAD_LINF = "grad_linf"
    """max |g_j|"""
    CLIPPED_L2 = "clipped_l2"
    """min(||g||_2, C): every clipped sample ties"""
    CLIPPED_LINF = "clipped_linf"
    """max |g_j| * min(1, C / ||g||_2)"""
    GRAD_COSINE = "grad_cosine"
    """1 - cosine(g, last noised update)"""
    GRAD_KURTOSIS = "grad_kurtosis"
    """excess kurtosis of the coordinates of g"""
    DIRECTION_UNIQUENESS = "direction_uniqueness"
    """1 - max |cosine(g, u)| over a window of past noised updates u"""
    PREDICTION_ENTROPY = "prediction_entropy"
    """entropy of the predicted probabilities, in nats"""
    PREDICTION_MARGIN = "prediction_margin"
    """largest other logit minus the true class's: minus the true-class margin"""
    PROJECTION_VARIABILITY = "projection_variability"
    """variance of g's projections on public random directions"""
    LOSS = "loss"
    """cross-entropy"""


GRADIENT_FREE = frozenset({Signature.PREDICTION_ENTROPY, Signature.PREDICTION_MARGIN, Signature.LOSS})
"""Signatures that the logits alone decide."""


@dataclass(frozen=True)
class Surroundings:
    """What a signature may use besides its own sample.

    Attributes:
        clip: C.
        updates: (w, P) the latest noised gradients, oldest first; w = 0 before the first step.
        directions: (m, P) public random directions.
    """

    clip: float
    updates: Array = field(default_factory=lambda: np.zeros((0, 0)))
    directions: Array = field(default_factory=lambda: np.zeros((0, 0)))


def signature(kind: Signature, gradient: Array, logits: Array, label: int, around: Surroundings) -> float:
    """The signature of one sample.

    Args:
        gradient: (P,) unclipped gradient of the sample's loss. logits: (c,). label: in [0, c).

    Returns:
        A number. Where a direction is undefined (no update yet, a zero gradient) its cosine counts as 0; the kurtosis
        of equal coordinates counts as 0.
    """
    match kind:
        case Signature.GRAD_L2:
            return float(np.linalg.norm(gradient))
        case Signature.GRAD_LINF:
            return float(np.abs(gradient).max())
        case Signature.CLIPPED_L2:
            return min(float(np.linalg.norm(gradient)), around.clip)
        case Signature.CLIPPED_LINF:
            norm = float(np.linalg.norm(gradient))
            return float(np.abs(gradient).max()) * (min(1.0, around.clip / norm) if norm > 0 else 1.0)
        case Signature.GRAD_COSINE:
            return 1.0 - (_cosine(gradient, around.updates[-1]) if len(around.updates) else 0.0)
        case Signature.GRAD_KURTOSIS:
            centred = gradient - gradient.mean()
            variance = float((centred**2).mean())
            return float((centred**4).mean()) / variance**2 - 3.0 if variance > 0 else 0.0
        case Signature.DIRECTION_UNIQUENESS:
            return 1.0 - max((abs(_cosine(gradient, update)) for update in around.updates), default=0.0)
        case Signature.PREDICTION_ENTROPY:
            log_p = log_softmax(logits)
            return float(-(np.exp(log_p) * log_p).sum())
        case Signature.PREDICTION_MARGIN:
            return float(np.delete(logits, label).max() - logits[label])
        case Signature.PROJECTION_VARIABILITY:
            return float((around.directions @ gradient).var())
        case Signature.LOSS:
            return float(-log_softmax(logits)[label])


def public_directions(rng: np.random.Generator, count: int, parameters: int) -> Array:
    """(count, parameters) random unit vectors, for ``projection_variability``."""
    drawn = rng.standard_normal((count, parameters))
    unit: Array = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit


def _cosine(one: Array, other: Array) -> float:
    norms = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / norms if norms > 0 else 0.0
