"""Per-sample gradients of a layer as sums of outer products; most questions are answered without multiplying out.

A layer with output s = W a + v has, for one sample, dL/dW = sum_t b_t a_t^T and dL/dv = sum_t b_t with b = dL/ds; t is
over positions (one for a linear layer, every output pixel of a convolution, every view of an augmented sample). With a
single position everything factorises: the squared norm is (||a||^2 + 1) ||b||^2 (Goodfellow 2015; ghost clipping).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True)
class Outer:
    """One layer's per-sample gradients for R models and B samples each.

    Attributes:
        a: (R, B, T, i) inputs. b: (R, B, T, o) gradients of each sample's loss by the layer's output.

    A flat gradient is W row by row, then v: o * i + o numbers.
    """

    a: Tensor
    b: Tensor

    @property
    def single(self) -> bool:
        return self.a.shape[2] == 1

    @cached_property
    def by_weights(self) -> Tensor:
        """(R, B, o * i) each sample's own, multiplied out."""
        return (self.b.transpose(2, 3) @ self.a).flatten(2)

    @cached_property
    def by_biases(self) -> Tensor:
        """(R, B, o)"""
        return self.b.squeeze(2) if self.single else self.b.sum(2)

    def squared_norms(self) -> Tensor:
        """(R, B)"""
        if self.single:
            return (_squared(self.a.squeeze(2)) + 1) * _squared(self.by_biases)
        if self._multiplied_out:
            return _squared(self.by_weights) + _squared(self.by_biases)
        return ((self.a @ self.a.transpose(2, 3) + 1) * (self.b @ self.b.transpose(2, 3))).sum((2, 3))

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """(R, o * i + o) sum of the gradients with (R, B) weights."""
        row = weights.unsqueeze(1)
        if self._multiplied_out:
            return torch.cat([row @ self.by_weights, row @ self.by_biases], dim=2).squeeze(1)
        scaled = (self.b * weights[:, :, None, None]).flatten(1, 2)
        return torch.cat([(scaled.transpose(1, 2) @ self.a.flatten(1, 2)).flatten(1), scaled.sum(1)], dim=1)

    @property
    def _multiplied_out(self) -> bool:
        """Whether gradients of their own cost fewer multiplications than products between positions (ghost norms)."""
        positions, inputs, outputs = self.a.shape[2], self.a.shape[3], self.b.shape[3]
        return not self.single and 2 * inputs * outputs <= positions**2 * (inputs + outputs)

    def largest(self) -> Tensor:
        """(R, B) largest absolute coordinate."""
        if self.single:
            return self.b.abs().amax((2, 3)) * self.a.abs().amax((2, 3)).clamp(min=1)
        return torch.maximum(self.by_weights.abs().amax(2), self.by_biases.abs().amax(2))

    def power_sums(self) -> Tensor:
        """(R, B, 4) sums of the coordinates' first to fourth powers, in float64."""
        powers = range(1, 5)
        if self.single:
            a, b = self.a.squeeze(2).double(), self.b.squeeze(2).double()
            return torch.stack([((a**p).sum(2) + 1) * (b**p).sum(2) for p in powers], dim=2)
        parts = self.by_weights.double(), self.by_biases.double()
        return torch.stack([torch.stack([(part**p).sum(2) for part in parts]).sum(0) for p in powers], dim=2)

    def dots(self, directions: Tensor) -> Tensor:
        """(R, B, m) inner products with (R, m, o * i + o) directions of each model."""
        count, outputs, inputs = directions.shape[1], self.b.shape[3], self.a.shape[3]
        weights, biases = torch.split(directions, [outputs * inputs, outputs], dim=2)
        if not self.single:
            return self.by_weights @ weights.transpose(1, 2) + self.by_biases @ biases.transpose(1, 2)
        flat = weights.reshape(len(weights), count * outputs, inputs)
        through = torch.unflatten(self.a.squeeze(2) @ flat.transpose(1, 2), 2, (count, outputs))
        return (through * self.by_biases.unsqueeze(2)).sum(3) + self.by_biases @ biases.transpose(1, 2)


def _squared(values: Tensor) -> Tensor:
    """Squared norms over the last dimension without a squared copy; over two, torch takes ten times as long."""
    norm: Tensor = torch.linalg.vector_norm(values, dim=-1)
    return norm.square()
