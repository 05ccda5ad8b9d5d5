"""What a training run does (and may change its guarantee), apart from how it is executed (and may not)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from coalmine.protocol.dpsgd.mechanism import DpSgd
from coalmine.protocol.dpsgd.optimiser import Optimiser, Sgd
from coalmine.protocol.dpsgd.schedule import FilterSchedule
from coalmine.protocol.errors import StudyError


@dataclass(frozen=True)
class Unprotected:
    """Training without clipping and noise, for baselines. It carries no claim.

    Attributes:
        q: sampling rate. declared_size: n_public; sums are divided by q * n_public as in DP-SGD.
    """

    q: float
    declared_size: int

    @property
    def batch_size(self) -> float:
        return self.q * self.declared_size


@dataclass(frozen=True)
class CrossEntropy:
    """The ordinary loss."""


@dataclass(frozen=True)
class Hamp:
    """HAMP's training loss (Chen and Pattabiraman 2024): soft labels of high entropy and a bonus for entropy.

    Attributes:
        gamma: least entropy of a soft label as a share of the largest possible, in [0, 1].
        alpha: weight of the prediction's entropy, finite and >= 0.

    Raises:
        StudyError: a value out of its range.
    """

    gamma: float = 0.5
    alpha: float = 0.01

    def __post_init__(self) -> None:
        if not 0 <= self.gamma <= 1:
            raise StudyError(f"{self.gamma!r} is not allowed", where="hamp.gamma", remedy="needs a number in [0, 1]")
        if not 0 <= self.alpha < math.inf:
            raise StudyError(f"{self.alpha!r} is not allowed", where="hamp.alpha", remedy="needs a finite number >= 0")


@dataclass(frozen=True)
class Augmentation:
    """Random views of a sample. Their gradients are averaged before the clip, so one sample's sensitivity stays C.

    Attributes:
        views: K >= 1 per sample and step (augmentation multiplicity, De et al. 2022).
        shift: largest shift of an image in pixels, zeros move in. flip: mirror images at random.
        jitter: standard deviation of Gaussian noise on every feature, finite.

    Raises:
        StudyError: a value out of its range.
    """

    views: int = 1
    shift: int = 0
    flip: bool = False
    jitter: float = 0.0

    def __post_init__(self) -> None:
        for key, value, least in (("views", self.views, 1), ("shift", self.shift, 0), ("jitter", self.jitter, 0)):
            if not least <= value < math.inf:
                raise StudyError(
                    f"{value!r} is not allowed",
                    where=f"augmentation.{key}",
                    remedy=f"needs a finite number, at least {least}",
                )


@dataclass(frozen=True)
class Plan:
    """One training run, or the common part of many.

    Attributes:
        privacy: the mechanism, or none.
        steps: >= 0 noised updates.
        filter: when and how samples are dropped; ``None`` for never.

    Raises:
        StudyError: a value out of its range.
    """

    privacy: DpSgd | Unprotected
    steps: int
    optimiser: Optimiser = field(default_factory=lambda: Sgd(0.3))
    filter: FilterSchedule | None = None
    loss: CrossEntropy | Hamp = field(default_factory=CrossEntropy)
    augmentation: Augmentation | None = None

    def __post_init__(self) -> None:
        if self.steps < 0:
            raise StudyError(f"{self.steps} steps", where="training.steps", remedy="needs 0 or more")


@dataclass(frozen=True)
class Execution:
    """How it is computed; no promise depends on it.

    Attributes:
        models_at_once: shadow models trained together in one pass, >= 1; fixed, never taken from the number of workers.
        double: float64 instead of float32.
        device: "cpu", "cuda" or "auto" (CUDA where there is one).
    """

    models_at_once: int = 16
    double: bool = False
    device: str = "auto"
