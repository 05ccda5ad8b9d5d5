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
    def dense(self) -> Tensor:
        """(R, B, o * i + o) the gradients themselves."""
        weights = self.b.transpose(2, 3) @ self.a
        return torch.cat([weights.flatten(2), self.b.sum(2)], dim=2)

    def squared_norms(self) -> Tensor:
        """(R, B)"""
        if self.single:
            return (_squared(self.a, (2, 3)) + 1) * _squared(self.b, (2, 3))
        positions, inputs, outputs = self.a.shape[2], self.a.shape[3], self.b.shape[3]
        if "dense" in self.__dict__ or inputs * outputs <= 2 * positions**2:
            return _squared(self.dense, (2,))
        return ((self.a @ self.a.transpose(2, 3) + 1) * (self.b @ self.b.transpose(2, 3))).sum((2, 3))

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """(R, o * i + o) sum of the gradients with (R, B) weights."""
        if "dense" in self.__dict__:
            return (weights.unsqueeze(1) @ self.dense).squeeze(1)
        scaled = (self.b * weights[:, :, None, None]).flatten(1, 2)
        return torch.cat([(scaled.transpose(1, 2) @ self.a.flatten(1, 2)).flatten(1), scaled.sum(1)], dim=1)

    def largest(self) -> Tensor:
        """(R, B) largest absolute coordinate."""
        if self.single:
            return self.b.abs().amax((2, 3)) * self.a.abs().amax((2, 3)).clamp(min=1)
        return self.dense.abs().amax(2)

    def power_sums(self) -> Tensor:
        """(R, B, 4) sums of the coordinates' first to fourth powers, in float64."""
        powers = range(1, 5)
        if self.single:
            a, b = self.a.squeeze(2).double(), self.b.squeeze(2).double()
            return torch.stack([((a**p).sum(2) + 1) * (b**p).sum(2) for p in powers], dim=2)
        dense = self.dense.double()
        return torch.stack([(dense**p).sum(2) for p in powers], dim=2)

    def dots(self, directions: Tensor) -> Tensor:
        """(R, B, m) inner products with (R, m, o * i + o) directions of each model."""
        if not self.single:
            return self.dense @ directions.transpose(1, 2)
        a, b = self.a.squeeze(2), self.b.squeeze(2)
        count, outputs, inputs = directions.shape[1], b.shape[2], a.shape[2]
        weights = directions[:, :, : outputs * inputs].reshape(len(a), count * outputs, inputs)
        through = torch.unflatten(a @ weights.transpose(1, 2), 2, (count, outputs))
        return (through * b.unsqueeze(2)).sum(3) + b @ directions[:, :, outputs * inputs :].transpose(1, 2)


def _squared(values: Tensor, over: tuple[int, ...]) -> Tensor:
    """Squared norm without a squared copy."""
    norm: Tensor = torch.linalg.vector_norm(values, dim=over)
    return norm.square()
