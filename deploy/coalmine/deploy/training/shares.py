"""Shadow models over the cluster's workers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.membership.canaries import Canary
from coalmine.clients.training.fast.shadows import Common, Shadows, joined, train_shadows
from coalmine.clients.training.gradient_canaries import GradientCanaries
from coalmine.clients.training.plan import Plan
from coalmine.deploy.tasks import share, spread
from coalmine.deploy.training.prepare import Prepared
from coalmine.protocol.dpsgd.terms import Scope
from coalmine.protocol.ports import Advance
from coalmine.protocol.randomness import Purpose, stream

Array = NDArray[np.float64]


def common_to(ready: Prepared, start: Array | None, canaries: Sequence[Canary] | GradientCanaries) -> Common:
    """What all shadow models of some canaries share. With scope ``client`` all canaries are at client 0."""
    data, labels = ready.data.train, ready.data.train.y
    gradient = None
    if isinstance(canaries, GradientCanaries):
        gradient, labels = canaries, np.concatenate([labels, canaries.label])
    elif canaries:
        data = data.with_rows(np.stack([one.x for one in canaries]), [one.y for one in canaries])
        labels = data.y
    groups = _groups(ready, len(canaries), labels)
    return Common(ready.spec, data, len(canaries), ready.data.test, start, groups, gradient)


def train_all(
    ready: Prepared,
    common: Common,
    plan: Plan,
    included: NDArray[np.bool_],
    seeds: NDArray[np.int64],
    advance: Advance,
) -> Shadows:
    """In shares of ``models_at_once``, whatever the number of workers. Ray must be running."""
    at_once, shared = ready.section.models_at_once, share(common)
    shares = [slice(place, place + at_once) for place in range(0, len(seeds), at_once)]
    parts: dict[int, Shadows] = {}
    for index, part in spread(train_shadows, [(shared, plan, included[own], seeds[own], at_once) for own in shares]):
        parts[index] = part
        advance(len(part.accuracy))
    return joined([parts[index] for index in range(len(shares))])


def model_seeds(seed: int, repetition: int, count: int, what: str) -> NDArray[np.int64]:
    """Each model's own; the same in every arm, so that arms differ in the filter alone."""
    return stream(seed, Purpose.MEMBERSHIP, repetition, what).integers(0, 2**62, count)


def _groups(ready: Prepared, canaries: int, labels: NDArray[np.int64]) -> NDArray[np.int64] | None:
    agreed = ready.agreed
    if agreed.filter is None or agreed.scope is Scope.FEDERATION:
        return None
    from coalmine.clients.training.fast.filtering import by_client

    holder = np.zeros(len(ready.data.train) + canaries, np.int64)
    for number, rows in enumerate(ready.parts):
        holder[rows] = number
    return by_client(holder, labels, agreed.filter.reach)
