"""Clipped sums of chains of linear layers in closed form, without a gradient per sample.

With inputs a and gradients b by a layer's outputs, sample j's gradient is b_j a_j^T, its squared norm is
(||a_j||^2 + 1) ||b_j||^2, and the clipped sum is (b * weights) a^T (Goodfellow 2015). Features come first, the samples
of all models side by side last: what treats samples one by one is called once for all models and takes vector
instructions; only products take a model at a time, which on a CPU beats padded products over many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from coalmine.clients.training.fast import columns
from coalmine.clients.training.hamp import soft_label
from coalmine.clients.training.models import Activation
from coalmine.clients.training.plan import CrossEntropy, Hamp

Reals = NDArray[np.floating]
Labels = NDArray[np.int64]
Layer = tuple[Reals, Reals]
"""(R, o, i) weights and (R, o) biases."""


@dataclass(frozen=True)
class Dense:
    """A chain of linear layers with an activation between each two.

    Attributes:
        widths: from the inputs to the classes.
    """

    widths: tuple[int, ...]
    activation: Activation

    def clipped_sums(
        self, theta: Reals, x: Reals, y: Labels, sizes: Sequence[int], clip: float, loss: CrossEntropy | Hamp
    ) -> Reals:
        """(R, P) sums of gradients, each clipped to L2 norm ``clip``, of R models.

        Args:
            theta: (R, P). x: (S, features) samples, model after model. y: (S,). sizes: R batch sizes that add up to S.
        """
        found = np.zeros(theta.shape, theta.dtype)
        bounds = np.cumsum([0, *sizes])
        layers = self._layers(theta)
        with np.errstate(all="ignore"):  # a gradient of 0 is not clipped; what diverged stays visible in the sum
            a = [x.T]
            for layer in layers[:-1]:
                a.append(self._active(_outputs(layer, a[-1], bounds)))
            b = [_by_logits(_outputs(layers[-1], a[-1], bounds), y, loss)]
            for (weights, _), active in zip(layers[:0:-1], a[:0:-1], strict=True):
                b.append(_products(weights.swapaxes(1, 2), b[-1], bounds))
                columns.through(b[-1], active, self.activation is Activation.TANH)
            b.reverse()
            share = _shares(a, b, clip)
        for (weights, biases), inputs, outputs in zip(self._layers(found), a, b, strict=True):
            columns.scale(outputs, share, bounds, biases)
            for part, own in zip(_parts(bounds), weights, strict=True):
                np.matmul(outputs[:, part], inputs[:, part].T, out=own)
        return found

    def _layers(self, theta: Reals) -> list[Layer]:
        """Views of (R, P) flat vectors."""
        views, start = [], 0
        for inputs, outputs in pairwise(self.widths):
            middle = start + outputs * inputs
            end = middle + outputs
            views.append((theta[:, start:middle].reshape(len(theta), outputs, inputs), theta[:, middle:end]))
            start = end
        return views

    def _active(self, s: Reals) -> Reals:
        return np.tanh(s, out=s) if self.activation is Activation.TANH else np.maximum(s, 0, out=s)


def _outputs(layer: Layer, a: Reals, bounds: Labels) -> Reals:
    weights, biases = layer
    s = _products(weights, a, bounds)
    columns.shift(s, biases, bounds)
    return s


def _products(weights: Reals, values: Reals, bounds: Labels) -> Reals:
    """Each model's own matrix times its columns."""
    found = np.empty((weights.shape[1], values.shape[1]), values.dtype)
    for part, own in zip(_parts(bounds), weights, strict=True):
        samples = values[:, part]
        if samples.shape[1] == 1:  # a vector that is not contiguous would be rounded in another way
            samples = samples.copy()
        np.matmul(own, samples, out=found[:, part])
    return found


def _parts(bounds: Labels) -> list[slice]:
    """Each model's columns."""
    return [slice(start, end) for start, end in pairwise(bounds.tolist())]


def _by_logits(logits: Reals, y: NDArray[np.int64], loss: CrossEntropy | Hamp) -> Reals:
    """(c, n) gradient of each sample's loss: confidences minus label, or HAMP's soft label and entropy."""
    if not logits.size:
        return logits
    logits -= logits.max(axis=0)
    p = np.exp(logits)
    total = columns.totals(p)
    p /= total
    own = np.arange(len(p))[:, None] == y
    found: Reals = p
    if isinstance(loss, CrossEntropy):
        found -= own
        return found
    true, other = soft_label(len(p), loss.gamma)
    log_p = logits - np.log(total)
    entropy = -columns.totals(p * log_p)
    found = p - np.where(own, true, other) + loss.alpha * p * (log_p + entropy)
    return found.astype(p.dtype)


def _shares(a: list[Reals], b: list[Reals], clip: float) -> Reals:
    """(n,) what is left of each sample's gradient."""
    inner = [columns.squared_norms_of_rows(a[0].T), *map(columns.squared_norms, a[1:])]
    squared = sum((own + 1) * columns.squared_norms(outputs) for own, outputs in zip(inner, b, strict=True))
    share: Reals = clip / np.sqrt(squared)
    return np.minimum(1, share, out=share)
