"""Random views of samples. What happens to a sample follows from the step and its id alone."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from coalmine.clients.training.plan import Augmentation
from coalmine.protocol.errors import StudyError


def require_movable(kind: Augmentation, shape: tuple[int, ...]) -> None:
    """Refuse to shift or mirror samples that are no images.

    Raises:
        StudyError: they are none.
    """
    if (kind.shift or kind.flip) and len(shape) != 3:
        raise StudyError(
            f"samples of shape {shape} cannot be moved or mirrored",
            where="augmentation",
            remedy="needs images; use jitter for vectors",
        )


def views(x: Tensor, ids: NDArray[np.int64], universe: int, kind: Augmentation, rng: np.random.Generator) -> Tensor:
    """(b, *shape) samples as (b, K, *shape) random views.

    Args:
        ids: (b,) of the samples. universe: ids are 0 ... universe - 1; every id draws, whether it is here or not.
        rng: of this step.
    """
    count = kind.views
    moves = rng.integers(-kind.shift, kind.shift + 1, (universe, count, 2))[ids]
    mirrored = rng.random((universe, count))[ids] < (0.5 if kind.flip else 0.0)
    seen = x.unsqueeze(1).expand(-1, count, *x.shape[1:])
    if kind.shift or kind.flip:
        seen = _moved(seen, moves, mirrored, kind.shift)
    if kind.jitter:
        size = int(torch.Size(x.shape[1:]).numel())
        noise = rng.standard_normal((universe, count, size), dtype=np.float32)[ids]
        seen = seen + kind.jitter * torch.as_tensor(noise, dtype=x.dtype, device=x.device).view(seen.shape)
    return seen.contiguous()


def _moved(seen: Tensor, moves: NDArray[np.int64], mirrored: NDArray[np.bool_], reach: int) -> Tensor:
    height, width = seen.shape[-2:]
    padded = functional.pad(seen, (reach, reach, reach, reach)).flatten(0, 1)
    rows = np.arange(height) + reach + moves[..., :1].reshape(-1, 1)
    columns = np.arange(width) + reach + moves[..., 1:].reshape(-1, 1)
    columns = np.where(mirrored.reshape(-1, 1), columns[:, ::-1], columns)
    sample = torch.arange(len(padded))[:, None, None, None]
    channel = torch.arange(padded.shape[1])[None, :, None, None]
    chosen = padded[
        sample, channel, torch.as_tensor(rows)[:, None, :, None], torch.as_tensor(columns)[:, None, None, :]
    ]
    return chosen.view(seen.shape)
