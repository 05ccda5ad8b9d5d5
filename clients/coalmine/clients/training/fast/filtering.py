"""The filter for many models: signatures in blocks of one size, then the plain rule of ``protocol.dpsgd.filter``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from coalmine.clients.training.fast.engine import Engine
from coalmine.clients.training.gradient_canaries import GradientCanaries
from coalmine.clients.training.plan import Plan
from coalmine.clients.training.progress import Progress
from coalmine.clients.training.ranking import scores
from coalmine.clients.training.table import Table
from coalmine.protocol.dpsgd.filter import Reach, drop
from coalmine.protocol.dpsgd.mechanism import DpSgd
from coalmine.protocol.dpsgd.signatures import GRADIENT_FREE, Signature, public_directions
from coalmine.protocol.errors import StudyError
from coalmine.protocol.randomness import Purpose, stream

BLOCK = 256
"""Samples per block. A sample's place in its block follows from its id, so that no sum is rounded in another way when
somebody else is absent."""

Array = NDArray[np.float64]


class Filtering:
    """Filters members of R models at the schedule's steps.

    Args:
        groups: (n + m,) within which the top k go, instead of what the schedule reaches: see :func:`by_client`.

    Raises:
        StudyError: a filter without a mechanism, or gradient canaries under a signature that needs logits.
    """

    def __init__(
        self,
        engine: Engine,
        plan: Plan,
        data: Table,
        canaries: GradientCanaries,
        seeds: Sequence[int],
        x: torch.Tensor,
        y: torch.Tensor,
        groups: NDArray[np.int64] | None = None,
    ) -> None:
        self._engine, self._plan, self._canaries, self._x, self._y = engine, plan, canaries, x, y
        self._labels = np.concatenate([data.y, canaries.label])
        self._due: dict[int, int] = {}
        self.window = 0
        self._public: Array = np.zeros((len(seeds), 0, engine.parameters))
        schedule = plan.filter
        if schedule is None:
            return
        self._reach = schedule.reach
        if groups is not None:
            self._labels, self._reach = groups, Reach.PER_CLASS
        if len(canaries) and schedule.signature in GRADIENT_FREE:
            raise StudyError(
                f"gradient canaries have no prediction, which {schedule.signature} looks at",
                where="filter.signature",
                remedy="use a signature of gradients",
            )
        self._due = dict(
            zip(schedule.steps(plan.steps, plan.privacy.q), schedule.epochs(plan.steps, plan.privacy.q), strict=True)
        )
        match schedule.signature:
            case Signature.GRAD_COSINE:
                self.window = 1
            case Signature.DIRECTION_UNIQUENESS:
                self.window = schedule.window
            case Signature.PROJECTION_VARIABILITY:
                self._public = np.stack(
                    [
                        public_directions(stream(seed, Purpose.DIRECTIONS), schedule.directions, engine.parameters)
                        for seed in seeds
                    ]
                )

    def filtered(self, now: Progress, tensor: Callable[[Array], torch.Tensor]) -> Progress:
        """The same, or with the samples dropped that this step's schedule takes."""
        if now.step not in self._due or self._plan.filter is None:
            return now
        ranked = self.signatures(now, tensor)
        gone = np.zeros_like(now.active)
        for row, active in enumerate(now.active):
            ids = np.flatnonzero(active)
            rule = self._plan.filter
            gone[row, drop(ids, self._labels[ids], ranked[row, ids], rule.k, self._reach)] = True
        return now.without(gone, self._due[now.step])

    def signatures(self, now: Progress, tensor: Callable[[Array], torch.Tensor]) -> Array:
        """(R, n + m) of every sample under every model, members or not."""
        if self._plan.filter is None:
            raise StudyError("there is no filter", where="filter", remedy="give the plan one")
        kind = self._plan.filter.signature
        directions = np.moveaxis(now.updates, 0, 1) if self.window else self._public
        theta, lengths = tensor(now.theta), np.linalg.norm(directions, axis=2)
        clip = self._plan.privacy.clip if isinstance(self._plan.privacy, DpSgd) else float("inf")
        found = []
        for start in range(0, len(self._x), BLOCK):
            x, y = self._x[start : start + BLOCK], self._y[start : start + BLOCK]
            here = len(x)
            if here < BLOCK:
                x = torch.cat([x, x.new_zeros(BLOCK - here, *x.shape[1:])])
                y = torch.cat([y, y.new_zeros(BLOCK - here)])
            facts = self._engine.facts(theta, x, y, tensor(directions), self._plan.loss)
            block = scores(
                kind,
                logits=facts.logits[:, :here],
                labels=y[:here].cpu().numpy(),
                norm=facts.norm[:, :here],
                largest=facts.largest[:, :here],
                power_sums=facts.power_sums[:, :here],
                dots=facts.dots[:, :here],
                direction_norms=lengths,
                parameters=self._engine.parameters,
                clip=clip,
            )
            found.append(block)
        if len(self._canaries):
            found.append(self._of_canaries(kind, directions, lengths, clip))
        return np.concatenate(found, axis=1)

    def _of_canaries(self, kind: Signature, directions: Array, lengths: Array, clip: float) -> Array:
        models, m = len(lengths), len(self._canaries)
        size = np.broadcast_to(np.abs(self._canaries.size), (models, m))
        signed = self._canaries.size[:, None]
        return scores(
            kind,
            logits=np.zeros((models, m, 2)),
            labels=np.zeros(m, np.int64),
            norm=size,
            largest=size,
            power_sums=np.broadcast_to(signed ** np.arange(1, 5), (models, m, 4)),
            dots=np.moveaxis(directions[:, :, self._canaries.coordinate], 1, 2) * signed,
            direction_norms=lengths,
            parameters=self._engine.parameters,
            clip=clip,
        )


def by_client(client: ArrayLike, labels: ArrayLike, reach: Reach) -> NDArray[np.int64]:
    """(n,) groups of a filter in which every client drops its own: one of each client, or of each of its classes.

    Args:
        client, labels: (n,) of each sample.
    """
    holder, label = np.asarray(client, np.int64), np.asarray(labels, np.int64)
    return holder if reach is Reach.GLOBAL else holder * (int(label.max(initial=0)) + 1) + label
