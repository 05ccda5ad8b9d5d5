"""Clipped sums of chains of linear layers in closed form, one model after another, without a gradient per sample.

With inputs a and gradients b by a layer's outputs, sample j's gradient is b_j a_j^T, its squared norm is
(||a_j||^2 + 1) ||b_j||^2, and the clipped sum is (b * weights) a^T (Goodfellow 2015). Features come first, samples
last, so that every sum over features takes vector instructions, and one small model's arrays stay in a core's cache:
on a CPU that beats products over many models at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from coalmine.clients.training.hamp import soft_label
from coalmine.clients.training.models import Activation
from coalmine.clients.training.plan import CrossEntropy, Hamp
from coalmine.protocol.compiled import compiled

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
                _through(b[-1], active, self.activation is Activation.TANH)
            b.reverse()
            share = _shares(a, b, clip)
        for (weights, biases), inputs, outputs in zip(self._layers(found), a, b, strict=True):
            _scale(outputs, share, bounds, biases)
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
    _shift(s, biases, bounds)
    return s


def _products(weights: Reals, values: Reals, bounds: Labels) -> Reals:
    """Each model's own matrix times its columns."""
    found = np.empty((weights.shape[1], values.shape[1]), values.dtype)
    for part, own in zip(_parts(bounds), weights, strict=True):
        columns = values[:, part]
        if columns.shape[1] == 1:  # what is no matrix but a vector is rounded in another way unless contiguous
            columns = columns.copy()
        np.matmul(own, columns, out=found[:, part])
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
    total = _totals(p)
    p /= total
    own = np.arange(len(p))[:, None] == y
    found: Reals = p
    if isinstance(loss, CrossEntropy):
        found -= own
        return found
    true, other = soft_label(len(p), loss.gamma)
    log_p = logits - np.log(total)
    entropy = -_totals(p * log_p)
    found = p - np.where(own, true, other) + loss.alpha * p * (log_p + entropy)
    return found.astype(p.dtype)


def _shares(a: list[Reals], b: list[Reals], clip: float) -> Reals:
    """(n,) what is left of each sample's gradient."""
    inner = [_squared(inputs, rows=number == 0) for number, inputs in enumerate(a)]  # samples are rows in memory
    squared = sum((own + 1) * _squared(outputs) for own, outputs in zip(inner, b, strict=True))
    share: Reals = clip / np.sqrt(squared)
    return np.minimum(1, share, out=share)


def _squared(values: Reals, rows: bool = False) -> Reals:
    """(n,) squared norms of the columns, which ``rows`` in memory may be."""
    found = np.zeros(values.shape[1], values.dtype)
    if rows:
        _add_squares_of_rows(values.T, found)
    else:
        _add_squares(values, found)
    return found


@compiled()
def _add_squares(values: Reals, found: Reals) -> None:
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            found[j] += values[i, j] * values[i, j]


@compiled(fastmath={"reassoc", "contract"})
def _add_squares_of_rows(values: Reals, found: Reals) -> None:
    for j in range(values.shape[0]):
        total = found[j]
        for i in range(values.shape[1]):
            total += values[j, i] * values[j, i]
        found[j] = total


def _totals(values: Reals) -> Reals:
    """(n,) sums of the columns. NumPy's own would add up a single column in another order than one of many."""
    found = np.zeros(values.shape[1], values.dtype)
    _add(values, found)
    return found


@compiled()
def _add(values: Reals, found: Reals) -> None:
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            found[j] += values[i, j]


@compiled()
def _through(gradient: Reals, active: Reals, tanh: bool) -> None:
    """From the gradient by an activation's values to that by its arguments."""
    for i in range(active.shape[0]):
        for j in range(active.shape[1]):
            if tanh:
                gradient[i, j] -= gradient[i, j] * active[i, j] * active[i, j]
            elif not active[i, j] > 0:
                gradient[i, j] = 0


# The loops below run over a slice: with bounds of its own a loop checks for negative places, and takes no vectors.


@compiled()
def _shift(values: Reals, by: Reals, bounds: Labels) -> None:
    """Adds row r of ``by`` to every column of model r."""
    for r in range(len(by)):
        for i in range(values.shape[0]):
            row, added = values[i, bounds[r] : bounds[r + 1]], by[r, i]
            for j in range(len(row)):
                row[j] += added


@compiled(fastmath={"reassoc", "contract"})
def _scale(values: Reals, share: Reals, bounds: Labels, total: Reals) -> None:
    """Scales column j by share j; the sums over model r's columns go into row r of ``total``, which was 0."""
    for r in range(len(total)):
        own = share[bounds[r] : bounds[r + 1]]
        for i in range(values.shape[0]):
            row, found = values[i, bounds[r] : bounds[r + 1]], total[r, i]
            for j in range(len(row)):
                scaled = row[j] * own[j]
                row[j] = scaled
                found += scaled
            total[r, i] = found
