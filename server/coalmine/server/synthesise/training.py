"""Training a language model, without and with DP-SGD (Abadi et al. 2016, arXiv 1607.00133).

One thread, seeded: the same weights from the same input on one machine.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from coalmine.protocol.errors import ModelError
from coalmine.protocol.ports import Advance
from coalmine.protocol.privacy import Mechanism
from coalmine.server.synthesise.lessons import Lesson
from coalmine.server.synthesise.recipe import Budget, Schedule

_IGNORED = -100
_AT_ONCE = 32
"""Records whose gradients are held one by one: memory is this many times the trained weights."""
_WARM_UP = 0.05
_SORTED_TOGETHER = 8
"""Batches of ordinary training whose records are sorted by length."""


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread inside; as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def fit(
    model: nn.Module, lessons: Sequence[Lesson], schedule: Schedule, rng: np.random.Generator, progress: Advance
) -> None:
    """AdamW over shuffled records.

    Raises:
        ModelError: the loss is no number any more.
    """
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=schedule.learning_rate, weight_decay=0.01)
    steps = schedule.epochs * math.ceil(len(lessons) / schedule.batch)
    slope = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _pace(step, steps))
    with one_thread():
        for _ in range(schedule.epochs):
            for batch in _batches(lessons, schedule.batch, rng):
                loss = record_losses(model, batch).mean()
                if not bool(torch.isfinite(loss)):
                    raise ModelError("training diverged", where="learning_rate", remedy="a smaller one")
                optimizer.zero_grad()
                torch.autograd.backward(loss)
                nn.utils.clip_grad_norm_(trained, 1.0)
                optimizer.step()
                slope.step()
                progress(len(batch))


def fit_privately(
    model: nn.Module,
    units: Sequence[Sequence[Lesson]],
    budget: Budget,
    mechanism: Mechanism,
    participation: np.random.Generator,
    noise_seed: int,
    progress: Advance,
) -> None:
    """DP-SGD with Adam through Opacus; every unit (a user, or a record) takes part in a step with probability q.

    A unit's gradient is the mean over its records in the step, clipped as one. Steps in which nobody takes part are
    noise alone. Sums are divided by the expected number of units, which is public, never by the realised one. The noise
    is Opacus' floating-point Gaussian from a seed: a guarantee against everybody who does not know the seed.

    Args:
        units: the records of each.
        mechanism: q, sigma and clip, as :func:`noise_level` found them.
        participation: decides who takes part, and with which records.
    """
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    watched = GradSampleModule(model, loss_reduction="sum")
    optimizer = DPOptimizer(
        torch.optim.Adam(trained, lr=budget.learning_rate),
        noise_multiplier=mechanism.sigma,
        max_grad_norm=mechanism.clip,
        expected_batch_size=max(1, round(mechanism.q * len(units))),
        generator=torch.Generator().manual_seed(noise_seed),
    )
    try:
        with one_thread(), warnings.catch_warnings():
            # Pieces are integers, which have no gradient: torch remarks on that at every hook of a first layer.
            warnings.filterwarnings("ignore", message="Full backward hook is firing")
            for _ in range(budget.steps):
                _private_step(watched, optimizer, trained, units, budget.max_records, mechanism.q, participation)
                progress(1)
    finally:
        watched.remove_hooks()
        for parameter in trained:
            parameter.grad = None


def _batches(lessons: Sequence[Lesson], size: int, rng: np.random.Generator) -> Iterator[list[Lesson]]:
    """Every lesson once, at random, but with others of about its length: half of a mixed batch would be padding."""
    order = rng.permutation(len(lessons))
    for first in range(0, len(order), _SORTED_TOGETHER * size):
        near = sorted(order[first : first + _SORTED_TOGETHER * size], key=lambda index: len(lessons[index].pieces))
        starts = range(0, len(near), size)
        for place in rng.permutation(len(starts)):
            yield [lessons[index] for index in near[starts[place] : starts[place] + size]]


def _private_step(
    watched: Any,
    optimizer: Any,
    trained: Sequence[nn.Parameter],
    units: Sequence[Sequence[Lesson]],
    max_records: int,
    q: float,
    rng: np.random.Generator,
) -> None:
    present = np.flatnonzero(rng.random(len(units)) < q).tolist()
    chosen = [_some(units[unit], max_records, rng) for unit in present]
    groups = _groups(chosen) or [[]]
    for number, group in enumerate(groups):
        optimizer.zero_grad()
        owners = torch.tensor([place for place, records in enumerate(group) for _ in records], dtype=torch.long)
        if group:
            shares = torch.tensor([1 / len(records) for records in group for _ in records])
            losses = record_losses(watched, [lesson for records in group for lesson in records])
            torch.autograd.backward((losses * shares).sum())
        for parameter in trained:
            parameter.grad_sample = _by_unit(parameter, owners, len(group))  # type: ignore[attr-defined]
        optimizer.signal_skip_step(do_skip=number < len(groups) - 1)
        optimizer.step()
    optimizer.zero_grad()


def _by_unit(parameter: Any, owners: Tensor, units: int) -> Tensor:
    """(units, ...) gradients from Opacus' (records, ...): a record at a time would clip, and protect, records only."""
    total = torch.zeros((units, *parameter.shape))
    return total.index_add_(0, owners, parameter.grad_sample) if units else total


def _groups(chosen: Sequence[Sequence[Lesson]]) -> list[list[Sequence[Lesson]]]:
    """Units in groups of few records, none of them divided."""
    groups: list[list[Sequence[Lesson]]] = []
    held = _AT_ONCE
    for records in chosen:
        if held + len(records) > _AT_ONCE:
            groups.append([])
            held = 0
        groups[-1].append(records)
        held += len(records)
    return groups


def _some(records: Sequence[Lesson], most: int, rng: np.random.Generator) -> Sequence[Lesson]:
    if len(records) <= most:
        return records
    return [records[index] for index in rng.choice(len(records), most, replace=False)]


def record_losses(model: Any, batch: Sequence[Lesson]) -> Tensor:
    """(n,) mean cross-entropy over the pieces of each record that are not its prompt; 0 where there are none.

    Each depends on its own record alone.
    """
    longest = max(len(lesson.pieces) for lesson in batch) - 1
    read = torch.zeros(len(batch), longest, dtype=torch.long)
    due = torch.full((len(batch), longest), _IGNORED)
    for row, (pieces, given) in enumerate(batch):
        read[row, : len(pieces) - 1] = torch.tensor(pieces[:-1])
        due[row, given - 1 : len(pieces) - 1] = torch.tensor(pieces[given:])
    logits = model(read)
    losses = nn.functional.cross_entropy(
        logits.flatten(0, 1), due.flatten(), reduction="none", ignore_index=_IGNORED
    ).view(due.shape)
    return losses.sum(1) / (due != _IGNORED).sum(1).clamp(min=1)


def _pace(step: int, steps: int) -> float:
    """A short warm-up, then down to a tenth in a straight line."""
    return min((step + 1) / max(1.0, _WARM_UP * steps), 1 - 0.9 * step / steps)
