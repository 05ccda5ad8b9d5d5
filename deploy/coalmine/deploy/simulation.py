"""Thousands of clients on one machine: shard actors, one a core, and one aggregator actor.

The server's side of this module gets releases and nothing else. A shard hands its noise-free sum to the aggregator
directly, so it never passes through the driver. A shard that dies is started again and repeats its call; the aggregator
ignores a part it already has.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import ray
from numpy.typing import NDArray
from ray.exceptions import OutOfMemoryError, RayActorError, RayTaskError
from threadpoolctl import threadpool_limits

from coalmine.clients.client import Client
from coalmine.clients.population.conditions import Conditions
from coalmine.clients.shard import Hosted, Shard
from coalmine.protocol.ballot import Ballot
from coalmine.protocol.bank import Bank, Commitment
from coalmine.protocol.errors import CoalmineError, ContributionError
from coalmine.protocol.noise import SharedNoise
from coalmine.protocol.ports import Encoder
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.randomness import Protected, Randomness, Simulated
from coalmine.protocol.release import Release
from coalmine.protocol.vote import grid_bits
from coalmine.server.aggregate import Aggregator

_ROUNDS_PER_CALL = 32
_RESTARTS = 3
_WORKER_LOST = ContributionError(
    "a worker process died and could not be replaced; nothing was released",
    remedy="look for lack of memory, then run the study again",
)


class _ShardActor(Shard):
    """A shard that hands in through an actor handle, on one thread."""

    def __init__(
        self,
        number: int,
        hosted: list[Any],
        mechanism: Mechanism,
        key: bytes,
        bits: int,
        conditions: list[Any],
        shares: tuple[SharedNoise, Randomness] | None,
    ) -> None:
        threadpool_limits(1)
        super().__init__(number, ray.get(hosted[0]), mechanism, key, bits, ray.get(conditions[0]), shares)

    def serve(self, ballot: Ballot, rounds: Sequence[int], guest: Client | None, time: int, aggregator: Any) -> None:
        def hand_in(*part: Any) -> None:
            ray.get(aggregator.add.remote(*part))

        self.take_part(ballot, rounds, guest, hand_in, time)


class SimulatedPopulation:
    """The clients of a study behind ``protocol.ports.Population``.

    Args:
        hosted: all clients. encoder: the clients' encoder. randomness: participation key for the clients, noise for the
            aggregator. positions: (r,) ascending, where the study declared probes. workers: shard actors.
        conditions: how clients come and go; ``None``: all of them always answer.
        sharing: how participants share the noise; ``None``: the aggregator adds all of it.
    """

    def __init__(
        self,
        hosted: Hosted,
        encoder: Encoder,
        mechanism: Mechanism,
        randomness: Randomness,
        positions: NDArray[np.int64],
        workers: int,
        conditions: Conditions | None = None,
        sharing: SharedNoise | None = None,
    ) -> None:
        eligible = len(hosted.ids) + 1  # a canary may be eligible besides
        self.bits = grid_bits(eligible, mechanism if sharing is None else sharing.carried(mechanism))
        shares = None if sharing is None else (sharing, _noise_only(randomness))
        self._parts = [ray.put(part) for part in split_clients(hosted, workers)]
        self._arguments = (mechanism, randomness.participation_key, self.bits, [ray.put(conditions)], shares)
        self._shards: list[Any] = [self._start(number) for number in range(workers)]
        self._aggregator: Any = (
            ray.remote(Aggregator)
            .options(num_cpus=0, max_restarts=0)
            .remote(mechanism, len(self._shards), self.bits, _noise_only(randomness), sharing)
        )
        self._guest: Client | None = None
        self._time = 0
        self._encoder = encoder
        self._positions = positions
        self._embedded: dict[str, NDArray[np.float32]] = {}
        self._posted: tuple[Bank, Commitment] | None = None
        self._ballot: Any = None

    def admit(self, guest: Client | None) -> None:
        """From now on this client is eligible beside the hosted ones (a canary); ``None``: nobody is."""
        self._guest = guest

    def set_time(self, time: int) -> None:
        """From now on rounds, whatever their numbers, stand here in the schedule of availability (0 at first): all
        repetitions of one audited round have the same users that would answer."""
        self._time = time

    def releases(self, rounds: Sequence[int], bank: Bank, commitment: Commitment) -> list[Release]:
        """See ``protocol.ports.Population``."""
        ballot = self._post(bank, commitment)
        done: list[Release] = []
        for start in range(0, len(rounds), _ROUNDS_PER_CALL):
            part = list(rounds[start : start + _ROUNDS_PER_CALL])
            guests = [self._guest, *[None] * (len(self._shards) - 1)]
            self._every_shard("serve", [(ballot, part, guest, self._time, self._aggregator) for guest in guests])
            try:
                done += _collect([self._aggregator.releases.remote(part, commitment)])[0]
            except (RayActorError, OutOfMemoryError):
                raise _WORKER_LOST from None
        return done

    def votes_on(self, bank: Bank, commitment: Commitment, coordinates: NDArray[np.int64]) -> NDArray[np.float64]:
        """All clients' votes on some coordinates, zero for those who would not answer at the time that is set: (n,
        len(coordinates)). What only a simulation's owner knows."""
        ballot = self._post(bank, commitment)
        return np.concatenate(self._every_shard("votes_on", [(ballot, coordinates, self._time)] * len(self._shards)))

    def process_ids(self) -> list[int]:
        """Of the shards, for tests that kill one."""
        return self._every_shard("process_id", [()] * len(self._shards))

    def close(self) -> None:
        """Stop the actors of this population."""
        for actor in (*self._shards, self._aggregator):
            ray.kill(actor)

    def _start(self, number: int) -> Any:
        """A shard actor with its clients; the driver keeps their data, so a shard can be started again."""
        return ray.remote(_ShardActor).options(num_cpus=0).remote(number, [self._parts[number]], *self._arguments)

    def _every_shard(self, call: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Let every shard do something at once, each with its own arguments. A shard that dies is started again and
        repeats its part.

        Raises:
            ContributionError: a shard died again and again.
        """
        answers: dict[int, Any] = {}
        for _ in range(1 + _RESTARTS):
            missing = [number for number in range(len(self._shards)) if number not in answers]
            calls = {number: getattr(self._shards[number], call).remote(*arguments[number]) for number in missing}
            for number, reference in calls.items():
                try:
                    answers[number] = _collect([reference])[0]
                except (RayActorError, OutOfMemoryError):
                    self._shards[number] = self._start(number)
            if len(answers) == len(self._shards):
                return [answers[number] for number in range(len(self._shards))]
        raise _WORKER_LOST

    def _post(self, bank: Bank, commitment: Commitment) -> Any:
        """Every client embeds the bank with its own encoder; on one machine they share one copy by reference."""
        if self._posted != (bank, commitment):
            new = [text for text in bank.texts if text not in self._embedded]
            self._embedded |= dict(zip(new, self._encoder.encode(new, what="bank"), strict=True))
            candidates = np.stack([self._embedded[text] for text in bank.texts])
            self._ballot = ray.put(Ballot(bank, commitment, candidates, self._positions))
            self._posted = (bank, commitment)
        return self._ballot


def split_clients(hosted: Hosted, shards: int) -> list[Hosted]:
    """Consecutive clients per shard, about the same number of records each."""
    rows = np.linspace(0, hosted.offsets[-1], shards + 1)
    edges = np.searchsorted(hosted.offsets, rows)
    edges[0], edges[-1] = 0, len(hosted.ids)
    parts = []
    for first, last in itertools.pairwise(edges):
        low, high = hosted.offsets[first], hosted.offsets[last]
        parts.append(Hosted(hosted.ids[first:last], hosted.records[low:high], hosted.offsets[first : last + 1] - low))
    return parts


def _noise_only(randomness: Randomness) -> Randomness:
    """Whoever draws noise needs no participation key."""
    return randomness if isinstance(randomness, Simulated) else Protected(b"")


def _collect(calls: Iterable[Any]) -> list[Any]:
    try:
        return list(ray.get(list(calls)))
    except RayTaskError as error:
        if isinstance(error.cause, CoalmineError):
            raise error.cause from None
        if isinstance(error.cause, RayActorError | OutOfMemoryError):
            raise _WORKER_LOST from None
        raise
