"""The port of the trainer: sums of clipped per-sample gradients, and what signatures look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coalmine.clients.training.plan import CrossEntropy, Hamp


@dataclass(frozen=True)
class Batches:
    """One batch of each of R models, one after another.

    Attributes:
        x: (S, K, *shape) K views of each sample. y: (S,). sizes: R of them, of any size, 0 included; S is their sum.
    """

    x: Tensor
    y: Tensor
    sizes: Sequence[int]

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        """(b, K, *shape) and (b,) of each model."""
        sizes = list(self.sizes)
        return zip(torch.split(self.x, sizes), torch.split(self.y, sizes), strict=True)

    def padded(self) -> Padded:
        """All of one size, the largest, at least 1."""
        most = max(1, *self.sizes)
        there = torch.arange(most)[None, :] < torch.tensor(self.sizes)[:, None]
        there = there.to(self.y.device)
        x = self.x.new_zeros(*there.shape, *self.x.shape[1:])
        y = self.y.new_zeros(there.shape)
        x[there], y[there] = self.x, self.y
        return Padded(x, y, there)


@dataclass(frozen=True)
class Padded:
    """Batches of one size.

    Attributes:
        x: (R, B, K, *shape). y: (R, B). there: (R, B) false where padded, at the end of rows.
    """

    x: Tensor
    y: Tensor
    there: Tensor


@dataclass(frozen=True)
class Facts:
    """What signatures need to know of the unclipped gradients of n samples under R models, float64.

    Attributes:
        logits: (R, n, c). norm, largest: (R, n). power_sums: (R, n, 4). dots: (R, n, m) with given directions.
    """

    logits: NDArray[np.float64]
    norm: NDArray[np.float64]
    largest: NDArray[np.float64]
    power_sums: NDArray[np.float64]
    dots: NDArray[np.float64]


class Engine(Protocol):
    """One way to compute clipped sums for a network with ``parameters`` parameters."""

    @property
    def parameters(self) -> int: ...

    @property
    def how(self) -> str:
        """For the log: which way, and why."""
        ...

    def initial(self, seed: int) -> NDArray[np.float64]:
        """(P,) initial parameters of the study seed."""
        ...

    def logits(self, theta: Tensor, x: Tensor) -> Tensor:
        """(R, n, c) of (R, P) models on (n, *shape) common samples; differentiable by both."""
        ...

    def clipped_sums(self, theta: Tensor, batches: Batches, clip: float, loss: CrossEntropy | Hamp) -> Tensor:
        """(R, P) sums of gradients, each clipped to L2 norm ``clip`` (infinite: not at all).

        A row's bits do not depend on the other models and their samples, as long as R and the largest batch are of the
        same size.
        """
        ...

    def facts(self, theta: Tensor, x: Tensor, y: Tensor, directions: Tensor, loss: CrossEntropy | Hamp) -> Facts:
        """Of (n, *shape) common samples; directions: (R, m, P)."""
        ...

    def place(self, coordinate: int) -> str:
        """The layer a coordinate of the flat vector belongs to, for messages."""
        ...
