"""Runs every mechanism of the plan, the correct one included, through shards and aggregators, and counts alarms."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from coalmine.clients.shard import Shard
from coalmine.deploy.selftest.broken_aggregators import PUBLIC_SEED, aggregator_of
from coalmine.deploy.selftest.broken_shards import HonestShard, shard_of
from coalmine.deploy.selftest.detectors import Claims, Detector, build_detector
from coalmine.deploy.selftest.plan import Plan, read_plan
from coalmine.deploy.selftest.world import World, build_world
from coalmine.protocol.accounting import pld_epsilon
from coalmine.protocol.bank import Bank
from coalmine.protocol.errors import CommitmentMismatch, StudyError
from coalmine.protocol.ports import Advance
from coalmine.protocol.randomness import Simulated
from coalmine.server.aggregate import Aggregator, draw_noise

CORRECT = "correct"
SWAPPED = "another bank for some"
_PER_TASK = 5

Alarms = dict[str, dict[str, bool]]
"""By mechanism, by test."""


@dataclass(frozen=True)
class Repetition:
    """What one repetition found.

    Attributes:
        refused: the shard that was sent another bank refused and handed in nothing.
    """

    alarms: Alarms
    refused: bool


def run_selftest(seed: int, repetitions: int, workers: int, advance: Advance) -> list[Repetition]:
    """Every repetition, in order; the same for any number of workers.

    Args:
        seed: >= 1; 0 is the public seed of one of the bugs.

    Raises:
        StudyError: a value out of its range.
    """
    if seed == PUBLIC_SEED:
        raise StudyError("0 is the seed that a bug makes public", where="--seed", remedy="needs a whole number >= 1")
    plan = read_plan()
    knobs = plan.mechanism.q, plan.mechanism.sigma
    claims = Claims(*(pld_epsilon(*knobs, rounds, plan.mechanism.delta)[1] for rounds in (1, 2)))
    parts = [range(first, min(first + _PER_TASK, repetitions)) for first in range(0, repetitions, _PER_TASK)]
    found: dict[int, list[Repetition]] = {}
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _one_thread) as pool:
        tasks = {pool.submit(repeat, seed, claims, part): part for part in parts}
        for task in as_completed(tasks):
            found[tasks[task].start] = task.result()
            advance(len(tasks[task]))
    return [repetition for start in sorted(found) for repetition in found[start]]


def repeat(seed: int, claims: Claims, numbers: Iterable[int]) -> list[Repetition]:
    """Some repetitions, each with rounds of its own."""
    bench = _bench(seed, claims)
    return [bench.run(number) for number in numbers]


@dataclass(frozen=True)
class Bench:
    """All mechanisms, set up.

    Attributes:
        behind_shard: aggregators that get the honest shard's sums, by mechanism. broken: shards, each with a correct
            aggregator, by mechanism.
    """

    plan: Plan
    world: World
    detector: Detector
    honest: Shard
    behind_shard: dict[str, Aggregator]
    broken: dict[str, tuple[Shard, Aggregator]]

    def run(self, number: int) -> Repetition:
        """One repetition: its rounds through every mechanism, its releases through every test."""
        count = self.plan.layout.rounds
        rounds = range(number * count, (number + 1) * count)
        size, bits = len(self.world.ballot.bank), self.world.bits
        std = self.plan.mechanism.noise_std
        public = np.array([draw_noise(Simulated(PUBLIC_SEED), std, bits, size, r) for r in rounds]) / 2.0**bits
        alarms: Alarms = {}
        sums = self._hand_in(self.honest, rounds)
        for name, aggregator in self.behind_shard.items():
            alarms[name] = self.detector.alarms(self._release(aggregator, rounds, sums), public)
        for name, (shard, aggregator) in self.broken.items():
            released = self._release(aggregator, rounds, self._hand_in(shard, rounds))
            alarms[name] = self.detector.alarms(released, public)
        return Repetition(alarms, self._refuses(rounds))

    def _hand_in(self, shard: Shard, rounds: Sequence[int]) -> NDArray[np.int64]:
        parts: list[NDArray[np.int64]] = []
        shard.take_part(self.world.ballot, rounds, None, lambda _rounds, _shard, sums: parts.append(sums))
        return parts[0]

    def _release(self, aggregator: Aggregator, rounds: Sequence[int], sums: NDArray[np.int64]) -> NDArray[np.float64]:
        """Hand in, hand in every second round again as after a crash, release."""
        aggregator.add(rounds, 0, sums)
        aggregator.add(rounds[1::2], 0, sums[1::2])
        return np.array([one.histogram for one in aggregator.releases(rounds, self.world.ballot.commitment)])

    def _refuses(self, rounds: Sequence[int]) -> bool:
        """Does a shard refuse a bank whose first two candidates changed places?"""
        ballot = self.world.ballot
        texts = ballot.bank.texts
        swapped = Bank((texts[1], texts[0], *texts[2:]), ballot.bank.labels, ballot.bank.encoder_id)
        parts: list[NDArray[np.int64]] = []
        try:
            self.honest.take_part(
                replace(ballot, bank=swapped), rounds, None, lambda _rounds, _shard, sums: parts.append(sums)
            )
        except CommitmentMismatch:
            return not parts
        return False


def build_bench(plan: Plan, seed: int, claims: Claims) -> Bench:
    """Set up every mechanism of the plan.

    Raises:
        KeyError: the plan names a bug that nobody built.
    """
    randomness = Simulated(seed)
    mechanism, key = plan.mechanism, randomness.participation_key
    world = build_world(plan.layout, mechanism, seed)
    honest = HonestShard(world.hosted, mechanism, key, world.bits)
    behind_shard = {CORRECT: Aggregator(mechanism, 1, world.bits, randomness)}
    broken = {}
    for bug in plan.bugs:
        if bug.name == SWAPPED:
            continue
        aggregator = aggregator_of(bug.name, mechanism, world.bits, randomness)
        shard = shard_of(bug.name, world, honest, mechanism, key)
        if aggregator is not None:
            behind_shard[bug.name] = aggregator
        elif shard is not None:
            broken[bug.name] = (shard, Aggregator(mechanism, 1, world.bits, randomness))
        else:
            raise KeyError(bug.name)
    return Bench(plan, world, build_detector(plan, world, claims), honest, behind_shard, broken)


@cache
def _bench(seed: int, claims: Claims) -> Bench:
    return build_bench(read_plan(), seed, claims)


def _one_thread() -> None:
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
