"""One client's part of a federated DP-SGD run: it holds some samples of a public range of ids and never adds noise.

All clients together draw exactly the batches of one process that holds everything: a sample's coin follows from its id.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coalmine.clients.training.fast.engine import Engine
from coalmine.clients.training.fast.population import Population
from coalmine.clients.training.fast.threads import on_one_thread
from coalmine.clients.training.plan import Execution, Plan
from coalmine.clients.training.progress import Progress
from coalmine.clients.training.table import Table
from coalmine.protocol.dpsgd.filter import drop
from coalmine.protocol.dpsgd.fixed_point import Integers, whole
from coalmine.protocol.dpsgd.mechanism import DpSgd
from coalmine.protocol.dpsgd.optimiser import State
from coalmine.protocol.errors import DataError, StudyError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ranked:
    """What a trusted aggregator needs for a filter over all clients; private, since it tells who is there.

    Attributes:
        ids, labels, scores: (n,) of the client's samples that are still active.
    """

    ids: NDArray[np.int64]
    labels: NDArray[np.int64]
    scores: Array


class Holder:
    """The samples of one client; it may hold none.

    Args:
        own: its samples. ids: (n,) their ids in 0 ... universe - 1, public only as a range.
        seed: of the study; it decides who is in a batch.

    Raises:
        DataError: ids out of range or twice.
    """

    def __init__(
        self,
        engine: Engine,
        plan: Plan,
        own: Table,
        ids: ArrayLike,
        universe: int,
        seed: int,
        execution: Execution | None = None,
    ) -> None:
        on_one_thread()
        places = np.asarray(ids, np.int64)
        if places.shape != (len(own),) or len(np.unique(places)) != len(own):
            raise DataError("ids do not fit the samples", where="client", remedy="needs a distinct id for each")
        if len(own) and (places.min() < 0 or places.max() >= universe):
            raise DataError("an id is out of range", where="client", remedy=f"needs ids 0 to {universe - 1}")
        x, y = np.zeros((universe, *own.shape), np.float32), np.zeros(universe, np.int64)
        x[places], y[places] = own.x, own.y
        members = np.zeros((1, universe), np.bool_)
        members[0, places] = True
        spread = Table(x, y, own.classes)
        self._plan, self._labels = plan, y
        # Every sample keeps its own place among blocks, so that its signature is the one of the central run.
        self._population = Population(engine, plan, spread, members, [seed], execution=execution)
        self._active = members[0].copy()

    @property
    def active(self) -> NDArray[np.bool_]:
        """(universe,) own samples that no filtering has dropped: part of this client's checkpoint."""
        return np.array(self._active)

    def restore(self, active: ArrayLike) -> None:
        """Go on from a checkpoint."""
        self._active = np.asarray(active, np.bool_).copy()

    def clipped_sum(self, theta: Array, step: int) -> Array:
        """(P,) sum of clipped gradients of own samples in this step's batch; zeros where none is.

        Raises:
            ContributionError: the model diverged.
        """
        return np.asarray(self._population.clipped_sums(self._at(theta, step))[0], np.float64)

    def whole_sum(self, theta: Array, step: int, bits: int) -> Integers:
        """(P,) the same sum in integers (see ``protocol.dpsgd.fixed_point``): any split of the samples gives one total.

        Args:
            theta: (P,), P as the engine has it. bits: of the fraction.

        Raises:
            ContributionError: the model diverged.
            StudyError: a plan without a mechanism.
        """
        if not isinstance(self._plan.privacy, DpSgd):
            raise StudyError("there is no clip", where="client", remedy="give the plan a mechanism")
        total = np.zeros(len(theta), np.int64)
        for gradients in self._population.clipped_gradients(self._at(theta, step)):
            total += whole(gradients, self._plan.privacy.clip, bits)
        return total

    def ranked(self, theta: Array, step: int, updates: Array) -> Ranked:
        """Signatures of own active samples.

        Args:
            updates: (w, P) latest noised gradients, oldest first, as many as the signature looks at.
        """
        ids = np.flatnonzero(self._active).astype(np.int64)
        if not len(ids):
            return Ranked(ids, ids.copy(), np.zeros(0))
        now = replace(self._at(theta, step), updates=np.asarray(updates, np.float64).reshape(-1, 1, len(theta)))
        return Ranked(ids, self._labels[ids], self._population.signatures(now)[0, ids])

    def forget(self, ids: ArrayLike) -> None:
        """Samples that were dropped, own or not, for the rest of the run."""
        self._active[np.asarray(ids, np.int64)] = False

    def filter_own(self, theta: Array, step: int, updates: Array) -> None:
        """Scope "client": drop one's own top k. Nobody else learns anything.

        Raises:
            StudyError: the plan has no filter.
        """
        if self._plan.filter is None:
            raise StudyError("there is no filter", where="filter", remedy="give the plan one")
        mine = self.ranked(theta, step, updates)
        self.forget(drop(mine.ids, mine.labels, mine.scores, self._plan.filter.k, self._plan.filter.reach))

    def _at(self, theta: Array, step: int) -> Progress:
        one = np.asarray(theta, np.float64)[None]
        return Progress(
            step,
            one,
            State(),
            self._active[None],
            np.full((1, len(self._active)), -1, np.int32),
            np.zeros((0, *one.shape)),
        )
