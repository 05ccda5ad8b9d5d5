"""What every part of a training audit works with, and shadow models over the cluster's workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.membership.canaries import Canary
from coalmine.clients.training.fast.shadows import NOTHING_ELSE, Asked, Common, Shadows, joined, train_shadows
from coalmine.clients.training.gradient_canaries import GradientCanaries
from coalmine.clients.training.plan import Plan
from coalmine.deploy.tasks import share, spread
from coalmine.deploy.training.prepare import Prepared
from coalmine.deploy.training.shelf import Shelf, digest
from coalmine.protocol.dpsgd.terms import Scope
from coalmine.protocol.ports import Advance
from coalmine.protocol.privacy import Claim
from coalmine.protocol.randomness import Purpose, stream

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Experiment:
    """One study under audit.

    Attributes:
        start: (P,) parameters that every model begins with, or ``None`` for each seed's own.
        promised: the claim. plan: of the study, with its filter where it has one.
        shelf: finished groups. advance: told of every model that is trained or found on the shelf.
    """

    ready: Prepared
    start: Array | None
    promised: Claim
    plan: Plan
    seed: int
    shelf: Shelf
    advance: Advance

    def with_advance(self, advance: Advance) -> Experiment:
        """The same under another progress bar."""
        return replace(self, advance=advance)

    def common(self, canaries: Sequence[Canary] | GradientCanaries, asked: Asked = NOTHING_ELSE) -> Common:
        """What all shadow models of some canaries share. With scope ``client`` all canaries are at client 0."""
        data, labels = self.ready.data.train, self.ready.data.train.y
        gradient = None
        if isinstance(canaries, GradientCanaries):
            gradient, labels = canaries, np.concatenate([labels, canaries.label])
        elif canaries:
            data = data.with_rows(np.stack([one.x for one in canaries]), [one.y for one in canaries])
            labels = data.y
        groups = self._groups(len(canaries), labels)
        return Common(self.ready.spec, data, len(canaries), self.ready.data.test, self.start, groups, gradient, asked)

    def train(self, common: Common, plan: Plan, included: NDArray[np.bool_], seeds: NDArray[np.int64]) -> Shadows:
        """In groups of ``models_at_once``, whatever the workers; what is on the shelf is not trained again."""
        at_once, key = self.ready.section.models_at_once, digest(common)
        groups = [slice(place, place + at_once) for place in range(0, len(seeds), at_once)]
        names = [self.shelf.name(key, plan, included[own], seeds[own], at_once) for own in groups]
        parts: dict[int, Shadows] = {}
        for index, name in enumerate(names):
            if (found := self.shelf.find(name)) is not None:
                parts[index] = found
                self.advance(len(found.accuracy))
        missing = [index for index in range(len(groups)) if index not in parts]
        if missing:
            shared = share(common)
            jobs = [(shared, plan, included[groups[index]], seeds[groups[index]], at_once) for index in missing]
            for job, part in spread(train_shadows, jobs):
                self.shelf.keep(names[missing[job]], part)
                parts[missing[job]] = part
                self.advance(len(part.accuracy))
        return joined([parts[index] for index in range(len(groups))])

    def seeds(self, repetition: int, count: int, what: str) -> NDArray[np.int64]:
        """Each model's own; the same in every arm, so that arms differ in the filter alone."""
        return stream(self.seed, Purpose.MEMBERSHIP, repetition, what).integers(0, 2**62, count)

    def _groups(self, canaries: int, labels: NDArray[np.int64]) -> NDArray[np.int64] | None:
        agreed = self.ready.agreed
        if agreed.filter is None or agreed.scope is Scope.FEDERATION:
            return None
        from coalmine.clients.training.fast.filtering import by_client

        holder = np.zeros(len(self.ready.data.train) + canaries, np.int64)
        for number, rows in enumerate(self.ready.parts):
            holder[rows] = number
        return by_client(holder, labels, agreed.filter.reach)
