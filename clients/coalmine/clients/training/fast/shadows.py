"""One worker's share of an audit's shadow models."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from numpy.typing import NDArray

from coalmine.clients.training.fast.build import engine
from coalmine.clients.training.fast.crafting import exposure, input_gradients, pretrained
from coalmine.clients.training.fast.engine import Engine
from coalmine.clients.training.fast.objective import losses
from coalmine.clients.training.fast.population import Population
from coalmine.clients.training.fast.threads import on_one_thread
from coalmine.clients.training.fast.views import require_movable, views
from coalmine.clients.training.gradient_canaries import GradientCanaries
from coalmine.clients.training.models import ModelSpec
from coalmine.clients.training.plan import Augmentation, CrossEntropy, Execution, Plan
from coalmine.clients.training.table import Table
from coalmine.protocol.dpsgd.signatures import Signature
from coalmine.protocol.randomness import Purpose, stream

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked of every model besides its answers about the canaries.

    Attributes:
        questions: (v, *shape) samples whose predicted labels are wanted, or ``None``.
        losses: of the private samples. each: which of them were dropped, and which test samples are labelled right.
        updates: what every noised update adds to the first gradient canary's parameter.
    """

    questions: NDArray[np.float32] | None = None
    losses: bool = False
    each: bool = False
    updates: bool = False


NOTHING_ELSE = Asked()


@dataclass(frozen=True, eq=False)
class Common:
    """What all shadow models of an audit share.

    Attributes:
        data: private samples, then m canaries. canaries: m.
        test: public samples for accuracy. start: (P,) initial parameters, or ``None`` for each seed's own.
        groups: (n + m,) within which the filter drops, or ``None`` for what the plan says.
        gradient: canaries in gradient space; they are then the m canaries, and ``data`` holds private samples alone.
        asked: what else is wanted of each model.
    """

    spec: ModelSpec
    data: Table
    canaries: int
    test: Table
    start: Array | None
    groups: NDArray[np.int64] | None
    gradient: GradientCanaries | None = None
    asked: Asked = NOTHING_ELSE

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
        answers: (R, v) labels predicted for the questions. losses: (R, n) of the private samples.
        gone: (R, n) which private samples were dropped. right: (R, t) which test samples are labelled right.
        updates: (R, T) sums that the first gradient canary's parameter received, noise included, before the division
            by the batch size. Of each of these, 0 columns where it was not asked for.
    """

    logits: Array
    dropped: NDArray[np.int32]
    accuracy: Array
    lost: Array
    touched: Array
    answers: NDArray[np.int64]
    losses: Array
    gone: NDArray[np.bool_]
    right: NDArray[np.bool_]
    updates: Array


def train_shadows(
    common: Common, plan: Plan, included: NDArray[np.bool_], seeds: NDArray[np.int64], at_once: int
) -> Shadows:
    """Train on one thread, ``at_once`` models in a pass; what comes out depends on no other share.

    Args:
        included: (R, m) which canaries each model sees. seeds: (R,).
    """
    on_one_thread()
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
        begun, updates = population.progress.theta, _Updates(common, plan)
        done = population.run(watch=updates)
        right = population.logits(common.test.x).argmax(axis=2) == common.test.y
        gone = done.dropped[:, :n] >= 0
        each = slice(None if common.asked.each else 0)
        found.append(
            Shadows(
                population.logits(common.data.x[n:]),
                done.dropped[:, n:],
                right.mean(axis=1),
                gone.mean(axis=1),
                _touched(common, done.theta - begun),
                _answers(common, population),
                _losses(common, population),
                gone[:, each],
                right[:, each],
                updates.seen(len(rows)),
            )
        )
    return joined(found)


class _Updates:
    """Notes what each step adds to the first gradient canary's parameter."""

    def __init__(self, common: Common, plan: Plan) -> None:
        wanted = common.asked.updates and common.gradient is not None
        self._coordinate = int(common.gradient.coordinate[0]) if wanted and common.gradient is not None else None
        self._batch, self._rows = plan.privacy.batch_size, list[Array]()

    def __call__(self, step: int, update: Array) -> None:
        if self._coordinate is not None:
            self._rows.append(update[:, self._coordinate] * self._batch)

    def seen(self, models: int) -> Array:
        """(R, T)"""
        return np.stack(self._rows, axis=1) if self._rows else np.zeros((models, 0))


def _answers(common: Common, population: Population) -> NDArray[np.int64]:
    questions = common.asked.questions
    if questions is None:
        return np.zeros((len(population.progress.theta), 0), np.int64)
    return np.asarray(population.logits(questions).argmax(axis=2), np.int64)


def _losses(common: Common, population: Population) -> Array:
    if not common.asked.losses:
        return np.zeros((len(population.progress.theta), 0))
    n = common.private
    found = torch.as_tensor(population.logits(common.data.x[:n]))
    labels = torch.as_tensor(common.data.y[:n]).expand(len(found), -1)
    return np.asarray(losses(CrossEntropy(), found, labels).numpy(), np.float64)


def _touched(common: Common, moved: Array) -> Array:
    if common.gradient is None:
        return np.zeros(len(moved))
    return np.asarray(moved[:, common.gradient.coordinate[0]], np.float64)


def joined(parts: list[Shadows]) -> Shadows:
    """Shares in order."""
    return Shadows(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(Shadows)))


def norms_at_filterings(common: Common, plan: Plan, seed: int) -> Array:
    """(f, n) gradient norms of private samples at each filtering of one run without canaries, NaN where dropped before.

    Private: what an attacker who knows all other samples could compute, to size a group just below the filter.
    """
    on_one_thread()
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
        on_one_thread()
        self._engine = engine(spec)
        self.theta = pretrained(self._engine, public, steps, seed, lr=lr)

    def logits(self, x: Array) -> Array:
        """(c,) of one (*shape) sample."""
        return np.asarray(_logits(self._engine, self.theta, x[None])[0], np.float64)

    def by_input(self, x: Array, label: int) -> Array:
        """(*shape) gradient of the loss by the features."""
        return np.asarray(input_gradients(self._engine, self.theta, x[None], [label])[0], np.float64)

    def exposed(self, x: Array, label: int) -> tuple[float, float, Array, Array]:
        """(loss, gradient norm, (*shape) gradients of both by the features), as a filter by ``grad_l2`` sees it."""
        found = exposure(self._engine, self.theta, x, label)
        return found.loss, found.norm, found.by_input_loss, found.by_input_norm


def seen_in(x: Array, kind: Augmentation, seed: int) -> NDArray[np.float32]:
    """(m, K, *shape) views of (m, *shape) samples: as they are, then K - 1 random ones; the same for every model.

    Raises:
        StudyError: samples that are no images cannot be moved or mirrored.
    """
    require_movable(kind, x.shape[1:])
    samples = torch.as_tensor(np.asarray(x, np.float32))
    found = views(samples, np.arange(len(x)), len(x), kind, stream(seed, Purpose.AUGMENTATION))
    found[:, 0] = samples
    return np.asarray(found.numpy(), np.float32)


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
