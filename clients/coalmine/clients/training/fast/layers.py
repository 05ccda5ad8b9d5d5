"""Layers that carry a model axis: R models see R batches in one call."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

Tape = list[tuple[Tensor, Tensor]]
"""(a, s) of every parametrised layer passed: inputs (R, N, T, i) and outputs (R, N, T, o)."""


class Layer(Protocol):
    """One layer; ``parameters`` numbers of the flat vector belong to it, weights row by row before biases."""

    @property
    def parameters(self) -> int: ...

    @property
    def fan_in(self) -> int: ...

    def forward(self, theta: Tensor, x: Tensor, tape: Tape | None) -> Tensor:
        """(R, N, ...) to (R, N, ...) under (R, parameters)."""
        ...


@dataclass(frozen=True)
class Linear:
    """s = W a + v on flattened samples."""

    inputs: int
    outputs: int

    @property
    def parameters(self) -> int:
        return self.outputs * (self.inputs + 1)

    @property
    def fan_in(self) -> int:
        return self.inputs

    def forward(self, theta: Tensor, x: Tensor, tape: Tape | None) -> Tensor:
        a = x.flatten(2)
        weights = torch.unflatten(theta[:, : self.outputs * self.inputs], 1, (self.outputs, self.inputs))
        biases = theta[:, self.outputs * self.inputs :].unsqueeze(1)
        s = torch.baddbmm(biases, a, weights.transpose(1, 2)).unsqueeze(2)
        return _recorded(a.unsqueeze(2), s, tape).squeeze(2)


@dataclass(frozen=True)
class Conv:
    """A convolution as a matrix product over unfolded patches (im2col), so that it is linear at every position."""

    inputs: int
    outputs: int
    kernel: int
    stride: int = 1
    padding: int = 0

    @property
    def parameters(self) -> int:
        return self.outputs * (self.fan_in + 1)

    @property
    def fan_in(self) -> int:
        return self.inputs * self.kernel**2

    def forward(self, theta: Tensor, x: Tensor, tape: Tape | None) -> Tensor:
        models, samples = x.shape[:2]
        patches = functional.unfold(x.flatten(0, 1), self.kernel, padding=self.padding, stride=self.stride)
        a = torch.unflatten(patches.transpose(1, 2), 0, (models, samples))
        weights = torch.unflatten(theta[:, : self.outputs * self.fan_in], 1, (self.outputs, self.fan_in))
        biases = theta[:, self.outputs * self.fan_in :]
        s = torch.baddbmm(biases.unsqueeze(1), a.flatten(1, 2), weights.transpose(1, 2))
        s = _recorded(a, torch.unflatten(s, 1, a.shape[1:3]), tape)
        height, width = (self.side(side) for side in x.shape[3:])
        return torch.unflatten(s.transpose(2, 3), 3, (height, width))

    def side(self, length: int) -> int:
        """The output's side for an input's."""
        return (length + 2 * self.padding - self.kernel) // self.stride + 1


@dataclass(frozen=True)
class Plain:
    """A function without parameters on (N, ...)."""

    function: Callable[[Tensor], Tensor]
    parameters: int = 0
    fan_in: int = 1

    def forward(self, theta: Tensor, x: Tensor, tape: Tape | None) -> Tensor:
        return torch.unflatten(self.function(x.flatten(0, 1)), 0, x.shape[:2])


def bound(layer: Layer) -> float:
    """Initial parameters are uniform in [-bound, bound], as in torch's own linear layers."""
    return 1 / math.sqrt(layer.fan_in)


def _recorded(a: Tensor, s: Tensor, tape: Tape | None) -> Tensor:
    if tape is None:
        return s
    if not s.requires_grad:
        s.requires_grad_()  # the first layer: nothing before it is differentiated
    tape.append((a, s))
    return s
