"""One worker's share of an audit's shadow models."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from coalmine.clients.training.fast.build import engine
from coalmine.clients.training.fast.crafting import exposure, input_gradients, pretrained
from coalmine.clients.training.fast.engine import Engine
from coalmine.clients.training.fast.population import Population
from coalmine.clients.training.gradient_canaries import GradientCanaries
from coalmine.clients.training.models import ModelSpec
from coalmine.clients.training.plan import Execution, Plan
from coalmine.clients.training.table import Table
from coalmine.protocol.dpsgd.signatures import Signature

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Common:
    """What all shadow models of an audit share.

    Attributes:
        data: private samples, then m canaries. canaries: m.
        test: public samples for accuracy. start: (P,) initial parameters, or ``None`` for each seed's own.
        groups: (n + m,) within which the filter drops, or ``None`` for what the plan says.
        gradient: canaries in gradient space; they are then the m canaries, and ``data`` holds private samples alone.
    """

    spec: ModelSpec
    data: Table
    canaries: int
    test: Table
    start: Array | None
    groups: NDArray[np.int64] | None
    gradient: GradientCanaries | None = None

    @property
    def private(self) -> int:
        """How many samples are no canaries."""
        return len(self.data) - (self.canaries if self.gradient is None else 0)


@dataclass(frozen=True, eq=False)
class Shadows:
    """Trained models, in the order of their seeds.

    Attributes:
        logits: (R, m, c) on the canaries; (R, 0, c) for canaries in gradient space.
        dropped: (R, m) epoch in which a canary was dropped, -1 for never.
        accuracy: (R,) on the test samples. lost: (R,) share of the private samples that was dropped.
        touched: (R,) final parameter that the first gradient canary pushes, minus where it began; else 0.
    """

    logits: Array
    dropped: NDArray[np.int32]
    accuracy: Array
    lost: Array
    touched: Array


def train_shadows(
    common: Common, plan: Plan, included: NDArray[np.bool_], seeds: NDArray[np.int64], at_once: int
) -> Shadows:
    """Train on one thread, ``at_once`` models in a pass; what comes out depends on no other share.

    Args:
        included: (R, m) which canaries each model sees. seeds: (R,).
    """
    torch.set_num_threads(1)
    n = common.private
    chosen, found = engine(common.spec), []
    for first in range(0, len(seeds), at_once):
        own = slice(first, first + at_once)
        rows = included[own]
        population = Population(
            chosen,
            plan,
            common.data,
            np.concatenate([np.ones((len(rows), n), np.bool_), rows], axis=1),
            seeds[own],
            start=common.start,
            gradient_canaries=common.gradient,
            groups=common.groups,
            execution=Execution(models_at_once=at_once, device="cpu"),
        )
        begun = population.progress.theta
        done = population.run()
        right = population.logits(common.test.x).argmax(axis=2) == common.test.y
        found.append(
            Shadows(
                population.logits(common.data.x[n:]),
                done.dropped[:, n:],
                right.mean(axis=1),
                (done.dropped[:, :n] >= 0).mean(axis=1),
                _touched(common, done.theta - begun),
            )
        )
    return joined(found)


def _touched(common: Common, moved: Array) -> Array:
    if common.gradient is None:
        return np.zeros(len(moved))
    return np.asarray(moved[:, common.gradient.coordinate[0]], np.float64)


def joined(parts: list[Shadows]) -> Shadows:
    """Shares in order."""
    names = ("logits", "dropped", "accuracy", "lost", "touched")
    return Shadows(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def norms_at_filterings(common: Common, plan: Plan, seed: int) -> Array:
    """(f, n) gradient norms of private samples at each filtering of one run without canaries, NaN where dropped before.

    Private: what an attacker who knows all other samples could compute, to size a group just below the filter.
    """
    torch.set_num_threads(1)
    assert plan.filter is not None
    n = common.private
    ranking = replace(plan, filter=replace(plan.filter, signature=Signature.GRAD_L2))
    groups = None if common.groups is None else common.groups[:n]
    members = np.ones((1, n), np.bool_)
    alone = Population(engine(common.spec), ranking, common.data, members, [seed], start=common.start, groups=groups)
    rows = []
    for step in plan.filter.steps(plan.steps, plan.privacy.q):
        now = alone.run(until=step)
        rows.append(np.where(now.active[0], alone.signatures(now)[0], np.nan))
    return np.array(rows)


class Reference:
    """A model trained on public samples alone: where a run may begin, and what an attacker crafts canaries with.

    Args:
        steps, lr: of ordinary SGD.
    """

    def __init__(self, spec: ModelSpec, public: Table, steps: int, seed: int, lr: float) -> None:
        torch.set_num_threads(1)
        self._engine = engine(spec)
        self.theta = pretrained(self._engine, public, steps, seed, lr=lr)

    def logits(self, x: Array) -> Array:
        """(c,) of one (*shape) sample."""
        return np.asarray(_logits(self._engine, self.theta, x[None])[0], np.float64)

    def by_input(self, x: Array, label: int) -> Array:
        """(*shape) gradient of the loss by the features."""
        return np.asarray(input_gradients(self._engine, self.theta, x[None], [label])[0], np.float64)

    def norm(self, x: Array, label: int) -> float:
        """L2 norm of the sample's gradient: what a filter by ``grad_l2`` would see."""
        return exposure(self._engine, self.theta, x, label).norm


def initial(spec: ModelSpec, seed: int) -> Array:
    """(P,) the seed's own initial parameters."""
    found: Array = engine(spec).initial(seed)
    return found


def accuracy(spec: ModelSpec, theta: Array, test: Table) -> float:
    """Share of test samples that the (P,) model labels right."""
    return float((_logits(engine(spec), theta, test.x).argmax(axis=1) == test.y).mean())


def logits(spec: ModelSpec, theta: Array, x: Array) -> Array:
    """(n, c) of the (P,) model."""
    return _logits(engine(spec), theta, x)


def _logits(chosen: Engine, theta: Array, x: NDArray[np.generic]) -> Array:
    with torch.no_grad():
        found = chosen.logits(torch.as_tensor(theta)[None], torch.as_tensor(np.asarray(x, np.float64)))
    return np.asarray(found[0].numpy(), np.float64)
