"""Clipped sums of chains of linear layers in closed form, one model after another, without a gradient per sample.

With inputs a and gradients b by a layer's outputs, sample j's gradient is b_j a_j^T, its squared norm is
(||a_j||^2 + 1) ||b_j||^2, and the clipped sum is (b * weights) a^T (Goodfellow 2015). Features come first, samples
last, so that every sum over features takes vector instructions, and one small model's arrays stay in a core's cache:
on a CPU that beats products over many models at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.clients.training.hamp import soft_label
from coalmine.clients.training.models import Activation
from coalmine.clients.training.plan import CrossEntropy, Hamp

Reals = NDArray[np.floating]


@dataclass(frozen=True)
class Dense:
    """A chain of linear layers with an activation between each two.

    Attributes:
        widths: from the inputs to the classes.
    """

    widths: tuple[int, ...]
    activation: Activation

    def clipped_sum(
        self, theta: Reals, x: Reals, y: NDArray[np.int64], clip: float, loss: CrossEntropy | Hamp
    ) -> Reals:
        """(P,) sum of the (n, features) samples' gradients, each clipped to L2 norm ``clip``; n may be 0."""
        with np.errstate(all="ignore"):  # a gradient of 0 is not clipped; what diverged stays visible in the sum
            return self._clipped_sum(theta, x, y, clip, loss)

    def _clipped_sum(
        self, theta: Reals, x: Reals, y: NDArray[np.int64], clip: float, loss: CrossEntropy | Hamp
    ) -> Reals:
        layers = self._layers(theta)
        a = [x.T]
        for layer in layers[:-1]:
            a.append(self._active(_outputs(layer, a[-1])))
        b = [_by_logits(_outputs(layers[-1], a[-1]), y, loss)]
        for (weights, _), active in zip(layers[:0:-1], a[:0:-1], strict=True):
            b.append(self._slope(active))
            b[-1] *= weights.T @ b[-2]
        b.reverse()
        squared = sum((_squared(inputs) + 1) * _squared(outputs) for inputs, outputs in zip(a, b, strict=True))
        share = np.minimum(1, clip / np.sqrt(squared))
        found = np.empty_like(theta)
        for (weights, biases), inputs, outputs in zip(self._layers(found), a, b, strict=True):
            outputs *= share
            np.matmul(outputs, inputs.T, out=weights)
            outputs.sum(axis=1, out=biases)
        return found

    def _layers(self, theta: Reals) -> list[tuple[Reals, Reals]]:
        """Views of the flat vector: (o, i) weights and (o,) biases of each layer."""
        views, start = [], 0
        for inputs, outputs in zip(self.widths, self.widths[1:], strict=False):
            middle = start + outputs * inputs
            views.append((theta[start:middle].reshape(outputs, inputs), theta[middle : middle + outputs]))
            start = middle + outputs
        return views

    def _active(self, s: Reals) -> Reals:
        return np.tanh(s, out=s) if self.activation is Activation.TANH else np.maximum(s, 0, out=s)

    def _slope(self, active: Reals) -> Reals:
        """The activation's derivative, from its value."""
        if self.activation is Activation.TANH:
            squared = active * active
            return np.subtract(1, squared, out=squared)
        return (active > 0).astype(active.dtype)


def _outputs(layer: tuple[Reals, Reals], a: Reals) -> Reals:
    weights, biases = layer
    s: Reals = weights @ a
    s += biases[:, None]
    return s


def _by_logits(logits: Reals, y: NDArray[np.int64], loss: CrossEntropy | Hamp) -> Reals:
    """(c, n) gradient of each sample's loss: confidences minus label, or HAMP's soft label and entropy."""
    if not logits.size:
        return logits
    logits -= logits.max(axis=0)
    p = np.exp(logits)
    total = p.sum(axis=0)
    p /= total
    own = np.arange(len(p))[:, None] == y
    found: Reals = p
    if isinstance(loss, CrossEntropy):
        found -= own
        return found
    true, other = soft_label(len(p), loss.gamma)
    log_p = logits - np.log(total)
    entropy = -(p * log_p).sum(axis=0)
    found = p - np.where(own, true, other) + loss.alpha * p * (log_p + entropy)
    return found.astype(p.dtype)


def _squared(values: Reals) -> Reals:
    found: Reals = np.einsum("ij,ij->j", values, values)
    return found
