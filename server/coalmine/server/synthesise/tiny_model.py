"""A small transformer that reads from left to right, made so that per-user gradients are right.

Input and output embeddings are not tied: Opacus would see one parameter twice and take two partial gradients for a
whole one. Layer norms only: a batch norm would mix users. Positions are given per row, so that their embedding has a
gradient per row too.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from coalmine.server.synthesise.recipe import Shape


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.attention = nn.Linear(width, 3 * width)
        self.attended = nn.Linear(width, width)
        self.before_thought = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x: Tensor, memory: list[Tensor] | None) -> Tensor:
        rows, length, width = x.shape
        mixed = self.attention(self.before_attention(x)).view(rows, length, 3, self.heads, width // self.heads)
        query, key, value = mixed.permute(2, 0, 3, 1, 4)
        if memory is not None:
            if memory:
                key, value = torch.cat([memory[0], key], 2), torch.cat([memory[1], value], 2)
            memory[:] = [key, value]
        seen = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=length > 1)
        x = x + self.attended(seen.transpose(1, 2).reshape(rows, length, width))
        thought: Tensor = self.narrow(nn.functional.gelu(self.widen(self.before_thought(x))))
        return x + thought


class TinyModel(nn.Module):
    """Logits of the next piece at every place.

    Args:
        pieces: size of the vocabulary.
        seed: of the initial weights.
    """

    def __init__(self, pieces: int, shape: Shape, seed: int) -> None:
        super().__init__()
        self.context = shape.context
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.piece = nn.Embedding(pieces, shape.width)
            self.position = nn.Embedding(shape.context, shape.width)
            self.blocks = nn.ModuleList(_Block(shape.width, shape.heads) for _ in range(shape.layers))
            self.last_norm = nn.LayerNorm(shape.width)
            self.out = nn.Linear(shape.width, pieces, bias=False)
            for layer in self.modules():
                if isinstance(layer, nn.Linear | nn.Embedding):
                    nn.init.normal_(layer.weight, std=0.02)

    def forward(self, pieces: Tensor) -> Tensor:
        """(n, t) pieces, t at most the context, to (n, t, vocabulary) logits."""
        return self._run(pieces, [None] * len(self.blocks), 0)

    def remember(self) -> list[list[Tensor]]:
        """Nothing yet read."""
        return [[] for _ in self.blocks]

    def step(self, pieces: Tensor, memory: Any) -> Tensor:
        """(n, vocabulary) logits after further pieces; more than one at a time only at the start."""
        before = memory[0][0].shape[2] if memory[0] else 0
        return self._run(pieces, memory, before)[:, -1]

    def _run(self, pieces: Tensor, memory: Any, before: int) -> Tensor:
        places = torch.arange(before, before + pieces.shape[1]).expand(pieces.shape)
        x = self.piece(pieces) + self.position(places)
        for block, remembered in zip(self.blocks, memory, strict=True):
            x = block(x, remembered)
        logits: Tensor = self.out(self.last_norm(x))
        return logits
