"""Layers that carry a model axis: R models see R batches in one call."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.grad import conv2d_input

Tape = list[tuple[Tensor, Tensor]]
"""(a, s) of every parametrised layer passed: inputs (R, N, T, i) and outputs (R, N, T, o), T positions."""


class Layer(Protocol):
    """One layer; ``parameters`` numbers of the flat vector belong to it, weights row by row before biases."""

    @property
    def parameters(self) -> int: ...

    @property
    def fan_in(self) -> int: ...

    def forward(self, theta: Tensor, x: Tensor, tape: Tape | None) -> Tensor:
        """(R, N, ...) to (R, N, ...) under (R, parameters)."""
        ...

    def flat(self, gradient: Tensor) -> Tensor:
        """(..., parameters) from the order of the tape's inputs to that of the flat vector."""
        ...

    def inner(self, direction: Tensor) -> Tensor:
        """And back."""
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

    def flat(self, gradient: Tensor) -> Tensor:
        return gradient

    def inner(self, direction: Tensor) -> Tensor:
        return direction


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
        weights = torch.unflatten(weights, 1, (self.outputs, self.inputs, *self._square))
        biases = theta[:, self.outputs * self.fan_in :]
        if tape is None:
            every = zip(x, weights, biases, strict=True)
            return torch.stack([functional.conv2d(*own, self.stride, self.padding) for own in every])
        a = self._patches(x.detach())
        s = _Convolved.apply(x, weights, biases, a, self.stride, self.padding)  # type: ignore[no-untyped-call]
        sides = self.side(x.shape[3]), self.side(x.shape[4])
        return torch.unflatten(_recorded(a, s, tape), 2, sides).movedim(4, 2)

    def flat(self, gradient: Tensor) -> Tensor:
        return self._rearranged(gradient, (*self._square, self.inputs), -1, -3)

    def inner(self, direction: Tensor) -> Tensor:
        return self._rearranged(direction, (self.inputs, *self._square), -3, -1)

    def _rearranged(self, values: Tensor, sizes: tuple[int, ...], source: int, destination: int) -> Tensor:
        weights, biases = torch.split(values, [self.outputs * self.fan_in, self.outputs], dim=-1)
        moved = torch.unflatten(weights, -1, (self.outputs, *sizes)).movedim(source, destination).flatten(-4)
        return torch.cat([moved, biases], dim=-1)

    def _patches(self, x: Tensor) -> Tensor:
        """(R, N, T, i): im2col by a strided view and one copy, channels last, which copies the longest runs."""
        padded = functional.pad(x, (self.padding,) * 4) if self.padding else x
        seen = padded.unfold(3, self.kernel, self.stride).unfold(4, self.kernel, self.stride)
        return seen.permute(0, 1, 3, 4, 5, 6, 2).flatten(4, 6).flatten(2, 3)

    @property
    def _square(self) -> tuple[int, int]:
        return self.kernel, self.kernel

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

    def flat(self, gradient: Tensor) -> Tensor:
        return gradient

    def inner(self, direction: Tensor) -> Tensor:
        return direction


def max_pooled(x: Tensor) -> Tensor:
    """(n, c, h, w) to (n, c, h - 1, w - 1): the largest of each 2 x 2 square."""
    # Channels beside each other: the other kernel is several times slower.
    return functional.max_pool2d(x.contiguous(memory_format=torch.channels_last), 2, 1)


class _Convolved(torch.autograd.Function):
    """A convolution whose patches are there already: a product forward; backward the gradient by its input alone."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weights: Tensor, biases: Tensor, patches: Tensor, stride: int, padding: int
    ) -> Tensor:
        """(R, N, T, o), so that channels lie beside each other, as the layers that follow like them."""
        ctx.save_for_backward(weights)
        ctx.shape, ctx.stride, ctx.padding = x.shape, stride, padding
        rows, columns = patches.flatten(1, 2), weights.movedim(2, 4).flatten(2).transpose(1, 2)
        s = torch.bmm(rows, columns).view(*patches.shape[:3], -1)
        return s.add_(biases[:, None, None, :])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (weights,) = ctx.saved_tensors
        sides = ctx.shape[3:]
        height, width = ((side + 2 * ctx.padding - weights.shape[-1]) // ctx.stride + 1 for side in sides)
        by_output = torch.unflatten(gradients[0], 2, (height, width)).movedim(4, 2)
        one_model, how = ctx.shape[1:], (ctx.stride, ctx.padding)
        last = [own.contiguous(memory_format=torch.channels_last) for own in weights]
        every = zip(last, by_output, strict=True)
        by_input = [conv2d_input(one_model, *own, *how) for own in every]  # type: ignore[no-untyped-call]
        stacked = by_input[0].unsqueeze(0) if len(by_input) == 1 else torch.stack(by_input)
        return stacked, None, None, None, None, None


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
