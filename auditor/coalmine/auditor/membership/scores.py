"""What is computed from a final model about a canary. Every score is higher where presence is more likely."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from scipy.stats import norm

from coalmine.protocol.errors import StudyError

Array = NDArray[np.float64]


def logit_scaled_confidence(logits: ArrayLike, labels: ArrayLike) -> Array:
    """``log(p / (1 - p))`` of the true label's probability, without cancellation (Carlini et al. 2022, section VI).

    Args:
        logits: (..., c). labels: (...) integers, broadcast against the leading axes.
    """
    z = np.asarray(logits, np.float64)
    own, others = _split(z, labels)
    return np.asarray(own - logsumexp(others, axis=-1), np.float64)


def minus_loss(logits: ArrayLike, labels: ArrayLike) -> Array:
    """Minus the cross-entropy; arguments as in :func:`logit_scaled_confidence`."""
    z = np.asarray(logits, np.float64)
    own, _ = _split(z, labels)
    return np.asarray(own - logsumexp(z, axis=-1), np.float64)


def likelihood_ratio(scores: ArrayLike, reference_in: ArrayLike, reference_out: ArrayLike) -> Array:
    """LiRA's log-likelihood ratio with a Gaussian for each hypothesis (Carlini et al. 2022, Algorithm 1).

    Args:
        scores: any shape. reference_in, reference_out: (n,) scores of *other* models with and without the canary; a
            reference that is tested itself makes every bound invalid.

    Raises:
        StudyError: fewer than two references on a side.
    """
    sides = [np.asarray(side, np.float64) for side in (reference_in, reference_out)]
    if min(map(len, sides)) < 2:
        raise StudyError("a Gaussian from fewer than two models", where="lira", remedy="give more reference models")
    laws = [norm(side.mean(), max(side.std(ddof=1), 1e-12)) for side in sides]
    x = np.asarray(scores, np.float64)
    return np.asarray(laws[0].logpdf(x) - laws[1].logpdf(x), np.float64)


def label_only(predictions: ArrayLike, label: int) -> Array:
    """Share of augmented views whose predicted label is right: all that a model shows which gives labels alone.

    Args:
        predictions: (models, views) predicted labels of one sample's views (Choquette-Choo et al. 2021).
    """
    return np.asarray((np.asarray(predictions) == label).mean(axis=-1), np.float64)


def calibrated(scores: ArrayLike, included: ArrayLike) -> Array:
    """Scores minus their mean over the *other* models without the canary: some samples are easy for every model.

    Args:
        scores: (models, m). included: (models, m) whether a model holds the canary.

    Raises:
        StudyError: a canary that fewer than two models lack.
    """
    s, held = np.asarray(scores, np.float64), np.asarray(included, np.bool_)
    without = (~held).sum(axis=0)
    if without.min(initial=2) < 2:
        raise StudyError(
            "a canary is in nearly all models", where="calibrated scores", remedy="needs two models without each"
        )
    total = np.where(held, 0.0, s).sum(axis=0)
    return np.asarray(s - np.where(held, total / without, (total - s) / (without - 1)), np.float64)


def group(scores: ArrayLike) -> Array:
    """(models,) score of a whole group: minus the largest loss over its canaries (arXiv 2608.28934, C.2).

    Args:
        scores: (models, m) of :func:`minus_loss`.
    """
    return np.asarray(np.asarray(scores, np.float64).min(axis=1), np.float64)


def loss_drop(initial: ArrayLike, final: ArrayLike, labels: ArrayLike) -> Array:
    """How much training lowered each canary's loss: the score of one-run audits; logits (m, c) before and after."""
    return minus_loss(final, labels) - minus_loss(initial, labels)


def _split(z: Array, labels: ArrayLike) -> tuple[Array, Array]:
    """The label's logit, and all others with minus infinity in its place."""
    places = np.broadcast_to(np.asarray(labels, np.int64), z.shape[:-1])[..., None]
    own = np.take_along_axis(z, places, axis=-1)[..., 0]
    others = z.copy()
    np.put_along_axis(others, places, -np.inf, axis=-1)
    return own, others
