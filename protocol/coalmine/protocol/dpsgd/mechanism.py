"""The knobs of a DP-SGD run that can change its guarantee, and nothing else."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from coalmine.protocol.errors import StudyError


class Sampling(StrEnum):
    """How a batch comes about.

    POISSON: every sample flips its own coin; what the accounting covers.
    SHUFFLED: consecutive slices of a fresh permutation each epoch; the Poisson claim is then heuristic.
    """

    POISSON = "poisson"
    SHUFFLED = "shuffled"


@dataclass(frozen=True)
class DpSgd:
    """``theta <- theta - lr * (1/B) * (sum_{i in batch} clip(g_i, C) + Normal(0, (sigma C)^2 I))``.

    Attributes:
        q: chance of a sample to be in a batch, in (0, 1].
        sigma: noise multiplier, > 0.
        clip: L2 bound C on one sample's gradient, > 0.
        delta: in (0, 1).
        declared_size: n_public >= 1, the public size of the data. Never the realised number of samples.
        sampling: how batches are drawn.

    Raises:
        StudyError: a value out of its range.
    """

    q: float
    sigma: float
    clip: float
    delta: float
    declared_size: int
    sampling: Sampling = Sampling.POISSON

    def __post_init__(self) -> None:
        _require(0 < self.q <= 1, "training.q", self.q, "a sampling rate in (0, 1]")
        _require(self.sigma > 0 and math.isfinite(self.sigma), "training.sigma", self.sigma, "a noise multiplier > 0")
        _require(self.clip > 0 and math.isfinite(self.clip), "training.clip", self.clip, "an L2 bound > 0")
        _require(0 < self.delta < 1, "training.delta", self.delta, "a probability in (0, 1)")
        _require(self.declared_size >= 1, "training.declared_size", self.declared_size, "at least 1")

    @property
    def batch_size(self) -> float:
        """B = q * n_public, the constant that a sum is divided by."""
        return self.q * self.declared_size

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise on one coordinate of the sum, sigma * C."""
        return self.sigma * self.clip


def first_step(epoch: int, q: float) -> int:
    """The step at which an epoch begins; an epoch is ``1/q`` steps (rounded to whole steps at its border)."""
    return round(epoch / q)


def _require(holds: bool, key: str, value: float, allowed: str) -> None:
    if not holds:
        raise StudyError(f"{value!r} is not allowed", where=key, remedy=f"needs {allowed}")
