"""Rounds through one shard and through two, and what a thousand clients cost in memory."""

from __future__ import annotations

import time
import zlib

import numpy as np
import psutil

from benchmarks.measurement import Measurement
from benchmarks.voting import _unit
from coalmine.clients.shard import Hosted
from coalmine.deploy.cluster import cluster
from coalmine.protocol.bank import Bank, commit
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.randomness import Simulated

USERS, RECORDS, CANDIDATES, ROUNDS = 1000, 64, 8192, 64


class RandomEncoder:
    """Embeddings of nothing: this benchmark is about votes."""

    id, dimension = "random", 384

    def encode(self, texts: list[str], *, what: str = "") -> np.ndarray:
        return _unit(np.random.default_rng(zlib.crc32(texts[0].encode())), len(texts))


def measure() -> list[Measurement]:
    """The first round routes all records; the later ones only draw, sum and add noise."""
    hosted = Hosted(
        tuple(f"user {number}" for number in range(USERS)),
        _unit(np.random.default_rng(0), USERS * RECORDS),
        np.arange(USERS + 1) * RECORDS,
    )
    bank = Bank(tuple(f"candidate {number}" for number in range(CANDIDATES)), ("",) * CANDIDATES, "random")
    found: list[Measurement] = []
    first: dict[int, float] = {}
    with cluster(2, 1 << 30):
        from coalmine.deploy.simulation import SimulatedPopulation

        for workers in (1, 2):
            population = SimulatedPopulation(
                hosted, RandomEncoder(), Mechanism(), Simulated(0), np.arange(64) * 100, workers
            )
            processes = [psutil.Process(number) for number in population.process_ids()]
            idle = sum(process.memory_full_info().uss for process in processes)
            started = time.perf_counter()
            population.releases([0], bank, commit(bank))
            first[workers] = time.perf_counter() - started
            started = time.perf_counter()
            population.releases(range(1, ROUNDS + 1), bank, commit(bank))
            later = (time.perf_counter() - started) / ROUNDS
            busy = sum(process.memory_full_info().uss for process in processes)
            found.append(
                Measurement(f"first round, {workers} shard(s), {USERS} users x {RECORDS}", first[workers], "s")
            )
            found.append(Measurement(f"later rounds, {workers} shard(s)", 1000 * later, "ms/round"))
            found.append(Measurement(f"memory per 1000 clients, {workers} shard(s), idle", idle / 2**20, "MiB"))
            found.append(Measurement(f"memory per 1000 clients, {workers} shard(s), after rounds", busy / 2**20, "MiB"))
            population.close()
    found.append(Measurement("two shards against one, first round", first[1] / first[2], "x"))
    return found
