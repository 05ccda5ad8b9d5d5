"""WideResNet-16 with group norm (Zagoruyko and Komodakis 2016; De et al. 2022). No batch norm: it mixes samples."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

_BLOCKS_PER_STAGE = 2  # depth 16 = 6 * 2 + 4


class WideResNet16(nn.Module):
    """(n, channels, h, w) to (n, classes) logits.

    Args:
        width: widening factor k; the stages have 16 k, 32 k and 64 k channels.
    """

    def __init__(self, channels: int, classes: int, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, 16, 3, padding=1)
        blocks: list[nn.Module] = []
        inputs = 16
        for stage in range(3):
            outputs = 16 * width * 2**stage
            for number in range(_BLOCKS_PER_STAGE):
                blocks.append(_Block(inputs, outputs, 2 if stage > 0 and number == 0 else 1))
                inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.GroupNorm(16, inputs)
        self.last = nn.Linear(inputs, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.norm(self.blocks(self.first(x))))
        logits: Tensor = self.last(x.mean((2, 3)))
        return logits


class _Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(16, inputs), nn.GroupNorm(16, outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1)
        self.short = nn.Conv2d(inputs, outputs, 1, stride) if inputs != outputs or stride != 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        active = functional.relu(self.norm1(x))
        shortcut: Tensor = self.short(active) if isinstance(self.short, nn.Conv2d) else x
        inner: Tensor = self.conv2(functional.relu(self.norm2(self.conv1(active))))
        return torch.add(shortcut, inner)
