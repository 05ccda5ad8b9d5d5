"""Crafted samples whose presence is easy to see (arXiv 2608.28934, section 4; Jagielski et al. 2020 for ClipBKD)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coalmine.protocol.errors import StudyError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Canary:
    """One crafted sample.

    Attributes:
        name: of its kind. x: (*shape) features. y: its label.
    """

    name: str
    x: Array
    y: int


def blank(shape: tuple[int, ...], label: int) -> Canary:
    """All zeros."""
    return Canary("blank", np.zeros(shape), label)


def mislabeled(x: ArrayLike, y: ArrayLike, classes: int, rng: np.random.Generator) -> Canary:
    """A random in-distribution sample under a random wrong label.

    Args:
        x: (n, *shape) samples that are not in the training data. y: (n,) their labels.

    Raises:
        StudyError: no sample to choose from, or a single class.
    """
    samples, labels = np.asarray(x, np.float64), np.asarray(y, np.int64)
    if not len(samples) or classes < 2:
        raise StudyError("nothing to choose from", where="mislabeled", remedy="needs samples and two classes")
    row = int(rng.integers(len(samples)))
    return Canary("mislabeled", samples[row], int((labels[row] + rng.integers(1, classes)) % classes))


def fgsm(x: ArrayLike, label: int, by_input: ArrayLike, step: float, low: float, high: float) -> Canary:
    """An adversarial example of one signed step that raises the loss on a public reference model.

    Args:
        x: (*shape). by_input: gradient of the reference model's loss by the features. low, high: their range.
    """
    moved = np.asarray(x, np.float64) + step * np.sign(np.asarray(by_input, np.float64))
    return Canary("fgsm", np.clip(moved, low, high), label)


def clipbkd(public_x: ArrayLike, predict: Callable[[Array], Array]) -> Canary:
    """ClipBKD: along the direction in which public samples vary least, with the label held least likely there.

    Args:
        public_x: (n, *shape), n >= 2; its root mean square norm is the canary's.
        predict: (*shape) to (c,) logits of a public reference model.

    Raises:
        StudyError: fewer than two public samples.
    """
    samples = np.asarray(public_x, np.float64)
    if len(samples) < 2:
        raise StudyError(f"{len(samples)} public samples", where="clipbkd", remedy="needs at least two")
    flat = samples.reshape(len(samples), -1)
    centred = flat - flat.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)  # ascending eigenvalues
    length = float(np.sqrt((flat**2).sum(axis=1).mean()))
    x = (length * directions[:, 0]).reshape(samples.shape[1:])
    return Canary("clipbkd", x, int(np.argmin(predict(x))))


def interpolated(other: Canary, alpha: float) -> Canary:
    """Between blank (alpha 0) and another canary (alpha 1), under that canary's label.

    Raises:
        StudyError: alpha outside [0, 1].
    """
    if not 0 <= alpha <= 1:
        raise StudyError(f"{alpha!r} is not allowed", where="canary.alpha", remedy="needs a number in [0, 1]")
    return Canary("interpolated", alpha * other.x, other.y)


def sparse(
    shape: tuple[int, ...], classes: int, rng: np.random.Generator, *, value: float = 1.0, lit: int = 5
) -> Canary:
    """A few bright features, everything else 0, and a random label: cheap to make in hundreds for one-run audits.

    Raises:
        StudyError: more bright features than there are.
    """
    size = int(np.prod(shape))
    if not 1 <= lit <= size:
        raise StudyError(f"{lit} bright features of {size}", where="sparse", remedy=f"needs 1 to {size}")
    x = np.zeros(size)
    x[rng.choice(size, lit, replace=False)] = value
    return Canary("sparse", x.reshape(shape), int(rng.integers(classes)))


Exposed = Callable[[Array], tuple[float, float, Array, Array]]
"""Features to (loss, signature, gradient of the loss, gradient of the signature) on a public reference model."""


def defence_aware(
    start: Canary,
    exposed: Exposed,
    ceiling: float,
    low: float,
    high: float,
    *,
    steps: int = 200,
    rate: float = 0.02,
) -> Canary:
    """A canary optimised to stay below the filter's reach while its loss stays as high as that allows.

    Signed gradient steps within the features' range: down the signature while it is above the ceiling, up the loss
    otherwise. The best point that was seen is kept: below the ceiling the one with the largest loss, else the one
    nearest to it.

    Args:
        exposed: on public data and a public model alone. ceiling: signature that the filter would just not drop,
            estimated on public samples, > 0. rate: step as a share of the features' range.

    Raises:
        StudyError: a value out of its range.
    """
    if not (ceiling > 0 and steps >= 1 and rate > 0 and high > low):
        raise StudyError(
            f"ceiling={ceiling}, steps={steps}, rate={rate}, range=[{low}, {high}]",
            where="defence_aware",
            remedy="needs positive values and a range that is not empty",
        )
    x, best, best_rank = np.clip(start.x, low, high), start.x, (-np.inf, -np.inf)
    for step in range(steps + 1):
        loss, signature, by_loss, by_signature = exposed(x)
        excess = max(0.0, signature / ceiling - 1)
        rank = (-excess, loss)
        if rank > best_rank:
            best, best_rank = x, rank
        ascent = -by_signature if excess else by_loss
        x = np.clip(x + rate * (high - low) * (1 - step / (steps + 1)) * np.sign(ascent), low, high)
    return Canary("defence_aware", best, start.y)


def already_there(canary: Canary, x: ArrayLike, y: ArrayLike) -> bool:
    """Whether the data already hold this very sample: its presence could not be tested."""
    samples = np.asarray(x, np.float64)
    same = (samples == canary.x).all(axis=tuple(range(1, samples.ndim)))
    return bool((same & (np.asarray(y) == canary.y)).any())
