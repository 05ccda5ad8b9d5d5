"""Many shadow models at once: the same plan, each model with its own members, seed, batches, noise and drops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from coalmine.clients.training.fast.engine import Batches, Engine
from coalmine.clients.training.fast.filtering import Filtering
from coalmine.clients.training.fast.views import require_movable, views
from coalmine.clients.training.gradient_canaries import GradientCanaries, no_gradient_canaries
from coalmine.clients.training.plan import Execution, Plan
from coalmine.clients.training.progress import Progress
from coalmine.clients.training.table import Table
from coalmine.protocol.dpsgd.mechanism import DpSgd, Sampling
from coalmine.protocol.dpsgd.sampling import poisson_batch, shuffled_batches
from coalmine.protocol.dpsgd.step import with_noise
from coalmine.protocol.errors import ContributionError, StudyError
from coalmine.protocol.randomness import Purpose, stream

Array = NDArray[np.float64]
Watch = Callable[[int, Array], None]
"""Called after every step with its number and the (R, P) noised gradients: what a white-box attacker sees."""

_AT_ONCE = 1024
_ALONE = 64
_TOGETHER = 8
"""Models whose clipped sums a CPU computes at once: enough to share calls, few enough for a core's cache."""


class Population:
    """R models that train in step.

    Args:
        engine: computes clipped sums.
        data: all samples that any model may see, canaries included; a sample's id is its row.
        members: (R, n + m) whether a model's data hold each sample; the last m are the gradient canaries.
        seeds: (R,) study seed of each model.
        start: (P,) or (R, P) initial parameters; by default each seed's own.
        groups: (n + m,) within which the filter drops, by default as its schedule says.

    Raises:
        StudyError: shapes that do not fit, or a plan that these data cannot follow.
    """

    def __init__(
        self,
        engine: Engine,
        plan: Plan,
        data: Table,
        members: ArrayLike,
        seeds: ArrayLike,
        *,
        start: ArrayLike | None = None,
        gradient_canaries: GradientCanaries | None = None,
        groups: NDArray[np.int64] | None = None,
        execution: Execution | None = None,
    ) -> None:
        execution = execution or Execution()
        self._engine, self._plan, self._data = engine, plan, data
        self._canaries = no_gradient_canaries() if gradient_canaries is None else gradient_canaries
        self._members = np.asarray(members, np.bool_)
        self._seeds = [int(seed) for seed in np.asarray(seeds, dtype=object)]
        self._device = _device(execution.device)
        self._dtype = torch.float64 if execution.double else torch.float32
        self._universe = len(data) + len(self._canaries)
        if self._members.shape != (len(self._seeds), self._universe):
            raise StudyError(
                f"membership of shape {self._members.shape}",
                where="shadow models",
                remedy=f"needs ({len(self._seeds)}, {self._universe})",
            )
        if plan.augmentation is not None:
            require_movable(plan.augmentation, data.shape)
        self._x = torch.as_tensor(data.x, dtype=self._dtype, device=self._device)
        self._y = torch.as_tensor(data.y, device=self._device)
        initial = (
            np.stack([engine.initial(seed) for seed in self._seeds]) if start is None else np.asarray(start, float)
        )
        initial = np.broadcast_to(initial, (len(self._seeds), engine.parameters))
        self._filtering = Filtering(engine, plan, data, self._canaries, self._seeds, self._x, self._y, groups)
        self._progress = Progress.beginning(initial, self._members)

    @property
    def progress(self) -> Progress:
        """Everything that the next step needs; save it to resume."""
        return self._progress

    def resume(self, progress: Progress) -> None:
        """Go on from where another population with the same arguments stopped."""
        self._progress = progress

    def run(self, until: int | None = None, watch: Watch | None = None) -> Progress:
        """Train up to step ``until`` (by default the plan's last).

        Raises:
            ContributionError: a model diverged; the message names step, model and layer, and ``progress`` stays at the
                last good step.
        """
        last = self._plan.steps if until is None else min(until, self._plan.steps)
        while self._progress.step < last:
            self._progress, update = self._after_one_step(self._progress)
            if watch is not None:
                watch(self._progress.step - 1, update)
        return self._progress

    def logits(self, x: ArrayLike, theta: Array | None = None) -> Array:
        """(R, n, c) logits of (n, *shape) samples under the current models, or under (R, P) others."""
        samples = torch.as_tensor(np.asarray(x), dtype=self._dtype, device=self._device)
        parameters = self._tensor(self._progress.theta if theta is None else theta)
        with torch.no_grad():
            blocks = [
                self._engine.logits(parameters, samples[start : start + _AT_ONCE])
                for start in range(0, max(1, len(samples)), _AT_ONCE)
            ]
        return np.asarray(torch.cat(blocks, dim=1).double().cpu().numpy(), np.float64)

    def clipped_sums(self, now: Progress) -> Array:
        """(R, P) sums of this step's clipped gradients, without noise: for who adds the noise, and nobody else.

        Raises:
            ContributionError: a model diverged.
        """
        return self._sums(now, self._batches(now))

    def clipped_gradients(self, now: Progress) -> Iterator[Array]:
        """(b, P) clipped gradients of this step's batch of the first model: for sums in integers, and nobody else.

        Each sample is computed as a model of its own in a block of one fixed size, so that no number is rounded in
        another way when somebody else is in the batch. Gradient canaries are left out.
        """
        privacy = self._plan.privacy
        clip = privacy.clip if isinstance(privacy, DpSgd) else float("inf")
        ids = np.flatnonzero(self._batches(now)[0, : len(self._data)])
        theta = self._tensor(now.theta)[:1].expand(_ALONE, -1)
        for start in range(0, len(ids), _ALONE):
            own = ids[start : start + _ALONE]
            seen = self._batches_of([own], self._seeds[:1], now.step)
            batches = Batches(seen.x, seen.y, [1] * len(own) + [0] * (_ALONE - len(own)))
            sums = self._engine.clipped_sums(theta, batches, clip, self._plan.loss)[: len(own)]
            found = np.asarray(sums.to(torch.float64, copy=True).cpu().numpy(), np.float64)
            self._require_finite(found.sum(axis=0, keepdims=True), now.step)
            yield found

    def signatures(self, now: Progress) -> Array:
        """(R, n + m) signatures of every sample at this point, members or not: for the filter, and nobody else."""
        return self._filtering.signatures(now, self._tensor)

    def _after_one_step(self, before: Progress) -> tuple[Progress, Array]:
        now = self._filtering.filtered(before, self._tensor)
        totals = self.clipped_sums(now)
        update = self._noised(totals, now.step)
        theta, state = self._plan.optimiser.step(now.theta, update, now.optimiser)
        return now.after(theta, state, update, self._filtering.window), update

    def _batches(self, now: Progress) -> NDArray[np.bool_]:
        """(R, universe) who is in this step's batches."""
        privacy = self._plan.privacy
        if isinstance(privacy, DpSgd) and privacy.sampling is Sampling.SHUFFLED:
            steps = max(1, round(1 / privacy.q))
            epoch, place = divmod(now.step, steps)
            chosen = np.zeros_like(now.active)
            for row, (active, seed) in enumerate(zip(now.active, self._seeds, strict=True)):
                chosen[row, shuffled_batches(stream(seed, Purpose.BATCH, epoch), active, steps)[place]] = True
            return chosen
        coins = [
            poisson_batch(stream(seed, Purpose.BATCH, now.step), self._universe, privacy.q) for seed in self._seeds
        ]
        return np.stack(coins) & now.active

    def _sums(self, now: Progress, chosen: NDArray[np.bool_]) -> Array:
        n = len(self._data)
        privacy = self._plan.privacy
        clip = privacy.clip if isinstance(privacy, DpSgd) else float("inf")
        ids = [np.flatnonzero(row[:n]) for row in chosen]
        theta, total = self._tensor(now.theta), np.empty_like(now.theta)
        together = _TOGETHER if self._device.type == "cpu" else len(ids)
        for first in range(0, len(ids), together):
            own = slice(first, first + together)
            batches = self._batches_of(ids[own], self._seeds[own], now.step)
            total[own] = self._engine.clipped_sums(theta[own], batches, clip, self._plan.loss).cpu().numpy()
        if len(self._canaries):
            sizes = chosen[:, n:] * self._canaries.clipped(clip)
            for row in range(len(total)):
                np.add.at(total[row], self._canaries.coordinate, sizes[row])
        self._require_finite(total, now.step)
        return total

    def _batches_of(self, ids: Sequence[NDArray[np.int64]], seeds: Sequence[int], step: int) -> Batches:
        index, sizes = torch.as_tensor(np.concatenate(ids), device=self._device), [len(own) for own in ids]
        samples, labels = self._x.index_select(0, index), self._y.index_select(0, index)
        kind = self._plan.augmentation
        if kind is None:
            return Batches(samples.unsqueeze(1), labels, sizes)
        seen = [
            views(x, own, self._universe, kind, stream(seed, Purpose.AUGMENTATION, step))
            for x, own, seed in zip(torch.split(samples, sizes), ids, seeds, strict=True)
        ]
        return Batches(torch.cat(seen), labels, sizes)

    def _noised(self, totals: Array, step: int) -> Array:
        if not isinstance(self._plan.privacy, DpSgd):
            return totals / self._plan.privacy.batch_size
        normal = np.empty_like(totals)
        for row, seed in zip(normal, self._seeds, strict=True):
            stream(seed, Purpose.NOISE, step).standard_normal(out=row)
        return with_noise(totals, self._plan.privacy, normal)

    def _require_finite(self, total: Array, step: int) -> None:
        if not np.isfinite(total.sum()):  # also where finite values overflow: they are of no use either
            model, coordinate = (int(place) for place in np.unravel_index(np.abs(total).argmax(), total.shape))
            raise ContributionError(
                "the gradient is not a number",
                where=f"step {step}, model {model}, {self._engine.place(coordinate)}",
                remedy="lower the learning rate; training stopped at its last good step",
            )

    def _tensor(self, theta: Array) -> torch.Tensor:
        return torch.as_tensor(theta, dtype=self._dtype, device=self._device)


def _device(wanted: str) -> torch.device:
    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if wanted == "cuda" and not torch.cuda.is_available():
        raise StudyError("there is no CUDA device", where="execution.device", remedy="use auto or cpu")
    if wanted not in ("cpu", "cuda"):
        raise StudyError(f"{wanted!r} is not known", where="execution.device", remedy="known: auto, cpu, cuda")
    return torch.device(wanted)
