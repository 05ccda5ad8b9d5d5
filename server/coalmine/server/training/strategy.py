"""Flower strategies of both modes. The filter, and clients that missed one, are the same in both.

Who is silent in a round adds nothing to it, and its samples are not among those that a filter over all clients ranks.
Before a client takes part again it repeats the filterings that it missed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy
from numpy.typing import NDArray

from coalmine.protocol.dpsgd import wire
from coalmine.protocol.dpsgd.filter import drop
from coalmine.protocol.dpsgd.fixed_point import real
from coalmine.protocol.dpsgd.signatures import Signature
from coalmine.protocol.dpsgd.step import noised_gradient
from coalmine.protocol.dpsgd.terms import Scope, Terms
from coalmine.protocol.errors import ContributionError
from coalmine.protocol.randomness import Purpose, stream
from coalmine.server.training.exchange import Answers, answers, arrays, ask, content, setting
from coalmine.server.training.standing import Filtering, Standing

_NOTHING = np.zeros(0, np.int64)


class Rounds(Strategy):
    """What both modes share.

    Args:
        grid: to the clients. nodes: by client number. standing: where the run stands.
        keep: called with every new standing.
    """

    def __init__(
        self,
        terms: Terms,
        grid: Grid,
        nodes: dict[int, int],
        standing: Standing,
        keep: Callable[[Standing], None],
    ) -> None:
        self._terms, self._grid, self._nodes, self._keep = terms, grid, nodes, keep
        self._number = {node: client for client, node in nodes.items()}
        self._owned: dict[int, NDArray[np.int64]] = {}
        self.standing = standing
        # A node may have kept nothing of earlier rounds; who has, ignores the repetition.
        self._behind = dict.fromkeys(nodes.values(), 0) if standing.past else {}

    @property
    def window(self) -> int:
        """Past updates that the filter's signature looks at."""
        rule = self._terms.filter
        if rule is None:
            return 0
        return {Signature.GRAD_COSINE: 1, Signature.DIRECTION_UNIQUENESS: rule.window}.get(rule.signature, 0)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        self._catch_up()
        now, done, filtering = self.standing, len(self.standing.past), None
        # A run that stopped between a filtering and its step has just caught up with that filtering.
        if now.step in self._terms.filterings and not (now.past and now.past[-1].step == now.step):
            self.standing = self._filtered()
            filtering = self.standing.past[-1]
        return [
            Message(self._order(node, done, filtering), dst_node_id=node, message_type="train")
            for node in self._nodes.values()
        ]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        found = answers(replies)
        for node, answer in list(found.items()):
            if wire.BEHIND in answer:
                self._behind[node] = setting(answer, wire.BEHIND, "done")
                del found[node]
        before = sum(filtering.step < self.standing.step for filtering in self.standing.past)
        for node in self._nodes.values():
            if node not in found:
                self._behind.setdefault(node, before)
        after = self._stepped(found)
        if not np.isfinite(after.theta).all():
            raise ContributionError(
                "the model is not a number",
                where=f"step {self.standing.step}",
                remedy="lower the learning rate; training stopped at its last good step",
            )
        self.standing = after
        self._keep(self.standing)
        return ArrayRecord([self.standing.theta]), None

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        return []

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        return None

    def summary(self) -> None:
        """Nothing that the settings do not say."""

    @abstractmethod
    def _stepped(self, found: Answers) -> Standing:
        """The standing after a round's answers."""

    def _order(self, node: int, done: int, filtering: Filtering | None) -> RecordDict:
        now = self.standing
        made = {wire.MODEL: [now.theta]}
        if filtering is not None:
            made |= self._window(filtering)
            if self._terms.scope is Scope.FEDERATION:
                made[wire.FORGET] = [np.intersect1d(filtering.gone, self._owned.get(node, _NOTHING))]
        number = -1 if filtering is None else done
        spent = now.spent.get(self._number[node], 0)
        return content(made, round=self._round, step=now.step, filtering=number, done=done, spent=spent)

    @property
    def _round(self) -> int:
        """Number of the present round, from 0, also after a resume."""
        return self.standing.step // self._terms.local_steps

    def _window(self, filtering: Filtering) -> dict[str, list[NDArray[np.float64]]]:
        return {wire.UPDATES: [filtering.updates.reshape(-1, len(filtering.theta))]} if self.window else {}

    def _filtered(self) -> Standing:
        if self._terms.scope is Scope.CLIENT:
            return self.standing.filtered(_NOTHING)
        now = self.standing.filtered(_NOTHING).past[-1]
        ids, labels, scores = self._ranked(now, [node for node in self._nodes.values() if node not in self._behind])
        rule = self._terms.filter
        assert rule is not None
        return self.standing.filtered(drop(ids, labels, scores, rule.k, rule.reach))

    def _ranked(self, at: Filtering, nodes: Iterable[int]) -> list[NDArray[np.generic]]:
        """Ids, labels and signatures of the active samples of those that answer; remembers whose is which."""
        made = content({wire.MODEL: [at.theta], **self._window(at)}, round=self._round, step=at.step)
        ranked = {node: arrays(answer, wire.RANKED) for node, answer in ask(self._grid, nodes, wire.RANK, made).items()}
        self._owned = {node: columns[0].astype(np.int64) for node, columns in ranked.items()}
        if not ranked:
            return [_NOTHING, _NOTHING, np.zeros(0)]
        return [np.concatenate(column) for column in zip(*ranked.values(), strict=True)]

    def _catch_up(self) -> None:
        """Nodes that missed filterings repeat them, one after another; who is silent still has to."""
        for node, done in sorted(self._behind.items()):
            del self._behind[node]
            for number, filtering in enumerate(self.standing.past[done:], done):
                if not self._repeated(node, number, filtering):
                    self._behind[node] = number
                    break

    def _repeated(self, node: int, number: int, filtering: Filtering) -> bool:
        order = {"round": self._round, "step": filtering.step, "filtering": number}
        if self._terms.scope is Scope.CLIENT:
            made = content({wire.MODEL: [filtering.theta], **self._window(filtering)}, **order)
            return node in ask(self._grid, [node], wire.FILTER, made)
        own = self._ranked(filtering, [node])[0]
        made = content({wire.FORGET: [np.intersect1d(own, filtering.gone)]}, **order)
        return node in self._owned and node in ask(self._grid, [node], wire.DROP, made)


class CentralSteps(Rounds):
    """Mode ``gradient``: integer sums, one Gaussian, the public denominator, one step; also if nobody answers."""

    def _stepped(self, found: Answers) -> Standing:
        now, agreed = self.standing, self._terms
        total = np.zeros(len(now.theta), np.int64)
        for answer in found.values():
            total += self._checked(arrays(answer, wire.SUM)[0])
        summed = real(total, agreed.mechanism, agreed.bits)
        update = noised_gradient(summed, agreed.mechanism, stream(agreed.seed, Purpose.NOISE, now.step))
        theta, state = agreed.optimiser.step(now.theta, update, now.optimiser)
        return now.after(theta, state, update, self.window)

    def _checked(self, part: NDArray[np.generic]) -> NDArray[np.int64]:
        if part.dtype != np.int64 or part.shape != self.standing.theta.shape:
            raise ContributionError(
                f"a sum of shape {part.shape} in {part.dtype}", where="round", remedy="use one version everywhere"
            )
        return part.astype(np.int64)


class Averaging(Rounds):
    """Mode ``local``: the mean of the clients' models with equal, public weights; who is silent counts as unchanged."""

    def _stepped(self, found: Answers) -> Standing:
        now, agreed = self.standing, self._terms
        moved, spent = np.zeros_like(now.theta), dict(now.spent)
        for client, node in sorted(self._nodes.items()):  # one order, so that floating-point sums repeat
            answer = found.get(node)
            if answer is None:
                continue
            model = arrays(answer, wire.MODEL)[0]
            if model.shape != now.theta.shape:
                raise ContributionError(f"a model of shape {model.shape}", where="round")
            moved += (model - now.theta) / agreed.clients
            spent[client] = setting(answer, wire.ACCOUNT, "steps")
        return replace(now, step=now.step + agreed.local_steps, theta=now.theta + moved, spent=spent)
