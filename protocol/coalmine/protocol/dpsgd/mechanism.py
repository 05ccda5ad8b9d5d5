"""The knobs of a DP-SGD run that can change its guarantee, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from coalmine.protocol.errors import StudyError
from coalmine.protocol.privacy import require_in_range


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
        q: chance of a sample to be in a batch, in (0, 1], at least 1e-12.
        sigma: noise multiplier, 1e-9 to 1e6.
        clip: L2 bound C on one sample's gradient, 1e-9 to 1e6.
        delta: in (0, 1), at least 1e-100.
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
        require_in_range("training", self.q, self.sigma, self.clip, self.delta, "sampling")
        if self.declared_size < 1:
            raise StudyError(
                f"{self.declared_size!r} is not allowed", where="training.declared_size", remedy="needs at least 1"
            )

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
