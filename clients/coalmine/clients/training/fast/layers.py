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
"""(a, s) of every parametrised layer passed: inputs (R, N, i, T) and outputs (R, N, o, T), T positions."""


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
        s = torch.baddbmm(biases, a, weights.transpose(1, 2)).unsqueeze(3)
        return _recorded(a.unsqueeze(3), s, tape).squeeze(3)


@dataclass(frozen=True)
class Conv:
    """A convolution: linear in its unfolded patches (im2col) at every output position."""

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
        weights = theta[:, : self.outputs * self.fan_in]
        weights = torch.unflatten(weights, 1, (self.outputs, self.inputs, self.kernel, self.kernel))
        biases = theta[:, self.outputs * self.fan_in :]
        # Each model's own kernel call: a grouped convolution over all of them is no faster on a CPU.
        s = torch.stack(
            [
                functional.conv2d(own, weight, bias, self.stride, self.padding)
                for own, weight, bias in zip(x, weights, biases, strict=True)
            ]
        )
        if tape is None:
            return s
        flat = _recorded(self._patches(x.detach()), s.flatten(3), tape)
        return torch.unflatten(flat, 3, s.shape[3:])

    def _patches(self, x: Tensor) -> Tensor:
        """(R, N, i, T): im2col by a strided view and one copy, several times faster than torch's own unfold."""
        padded = functional.pad(x, (self.padding,) * 4) if self.padding else x
        seen = padded.unfold(3, self.kernel, self.stride).unfold(4, self.kernel, self.stride)
        return seen.permute(0, 1, 2, 5, 6, 3, 4).flatten(2, 4).flatten(3, 4)

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
