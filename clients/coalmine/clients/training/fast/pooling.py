"""Max pooling over 2 x 2 squares at stride 1; many times faster on a CPU than torch's general pooling."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


def max_pooled(x: Tensor) -> Tensor:
    """(n, c, h, w) to (n, c, h - 1, w - 1). Of equal values the upper left one gets the gradient."""
    pooled: Tensor = _MaxPool.apply(x)  # type: ignore[no-untyped-call]
    return pooled


class _MaxPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        upper, lower = x[..., :-1, :], x[..., 1:, :]
        rows = torch.maximum(upper, lower)
        left, right = rows[..., :-1], rows[..., 1:]
        ctx.save_for_backward(lower > upper, right > left)
        return torch.maximum(left, right)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        down, across = ctx.saved_tensors
        moved = gradients[0] * across
        rows = functional.pad(gradients[0] - moved, (0, 1))
        rows[..., 1:] += moved
        moved = rows * down
        x = functional.pad(rows - moved, (0, 0, 0, 1))
        x[..., 1:, :] += moved
        return x
