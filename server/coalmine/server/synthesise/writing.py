"""Texts from a trained language model: post-processing of its weights."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from coalmine.protocol.ports import Advance
from coalmine.protocol.randomness import Purpose, stream
from coalmine.server.synthesise.lessons import prompt
from coalmine.server.synthesise.pieces import Pieces
from coalmine.server.synthesise.recipe import Asking
from coalmine.server.synthesise.training import one_thread

_AT_ONCE = 128
"""Fixed: rows that are computed together share their rounding, so another number would give other texts."""


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
"""What a model that writes bytes may come up with, and no table of texts should hold."""


def write(model: Any, pieces: Pieces, labels: Sequence[str], asking: Asking, seed: int, progress: Advance) -> list[str]:
    """One text per label, in their order, blank ones among them; a function of the arguments."""
    written: dict[str, list[str]] = {}
    with one_thread(), torch.inference_mode():
        for label, count in Counter(labels).items():
            texts = written.setdefault(label, [])
            while len(texts) < count:
                rows = min(_AT_ONCE, count - len(texts))
                draws = stream(seed, Purpose.SYNTHESIS, len(texts) // _AT_ONCE, label).random(
                    (_AT_ONCE, asking.longest)
                )
                texts += _batch(model, pieces, label, asking, torch.from_numpy(draws[:rows]))
                progress(rows)
    waiting = {label: iter(texts) for label, texts in written.items()}
    return [next(waiting[label]) for label in labels]


def _batch(model: Any, pieces: Pieces, label: str, asking: Asking, draws: Tensor) -> list[str]:
    rows = len(draws)
    given = prompt(label, pieces)[: model.context // 2]
    memory = model.remember()
    logits = model.step(torch.tensor([given] * rows), memory)
    written: list[Tensor] = []
    going = torch.ones(rows, dtype=torch.bool)
    for place in range(min(asking.longest, model.context - len(given))):
        chosen = choose(logits, draws[:, place], asking.temperature)
        chosen = torch.where(going, chosen, pieces.end)
        going &= chosen != pieces.end
        written.append(chosen)
        if not bool(going.any()) or place == model.context - len(given) - 1:
            break
        logits = model.step(chosen[:, None], memory)
    table = torch.stack(written, 1).tolist()
    return [_CONTROL.sub("", pieces.decode(_until(row, pieces.end))).strip() for row in table]


def choose(logits: Tensor, draws: Tensor, temperature: float) -> Tensor:
    """One piece per row by inverting the cumulative distribution of the whole vocabulary.

    Args:
        logits: (n, vocabulary). draws: (n,) float64 in [0, 1).

    Returns:
        (n,) int64.
    """
    shares = torch.softmax(logits.double() / temperature, dim=1).cumsum(1)
    return (shares <= draws[:, None] * shares[:, -1:]).sum(1).clamp(max=logits.shape[1] - 1)


def _until(row: list[int], end: int) -> list[int]:
    return row[: row.index(end)] if end in row else row
