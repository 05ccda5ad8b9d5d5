"""How the cost of rounds grows: one of users, records, bank and rounds four times as large, the rest fixed."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import psutil

from benchmarks.measurement import Measurement
from benchmarks.shards import RandomEncoder
from benchmarks.voting import _unit
from coalmine.clients.shard import Hosted
from coalmine.deploy.cluster import cluster
from coalmine.protocol.bank import Bank, commit
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.randomness import Simulated

TIMES = 4


@dataclass(frozen=True)
class Size:
    """A deployment: users, records of each, candidates in a bank, rounds (each with a bank of its own)."""

    users: int = 2000
    records: int = 16
    bank: int = 2048
    rounds: int = 2


def measure() -> list[Measurement]:
    """Two shards; embeddings are random, because embedding costs the same per text whatever the size."""
    base = Size()
    found: list[Measurement] = []
    with cluster(2, 1 << 30):
        _cost(base)  # the first actors of a cluster compile
        seconds, memory = _cost(base)
        found.append(Measurement(f"{base}", seconds, "s"))
        found.append(Measurement("memory of both shards above their start", memory, "MiB"))
        for factor in ("users", "records", "bank", "rounds"):
            larger = replace(base, **{factor: TIMES * getattr(base, factor)})
            more_seconds, more_memory = _cost(larger)
            found.append(Measurement(f"{TIMES} x the {factor}: time", more_seconds / seconds, "x"))
            found.append(Measurement(f"{TIMES} x the {factor}: memory", more_memory / memory, "x"))
    return found


def _cost(size: Size) -> tuple[float, float]:
    """Wall clock of all rounds, and the private memory (MiB) that the shards hold after them."""
    from coalmine.deploy.simulation import SimulatedPopulation

    hosted = Hosted(
        tuple(f"user {number}" for number in range(size.users)),
        _unit(np.random.default_rng(0), size.users * size.records),
        np.arange(size.users + 1) * size.records,
    )
    banks = [
        Bank(tuple(f"candidate {number} of {round}" for number in range(size.bank)), ("",) * size.bank, "random")
        for round in range(size.rounds)
    ]
    mechanism = Mechanism(max_records=size.records)
    population = SimulatedPopulation(hosted, RandomEncoder(), mechanism, Simulated(0), np.arange(8), 2)
    processes = [psutil.Process(number) for number in population.process_ids()]
    idle = sum(process.memory_full_info().uss for process in processes)
    started = time.perf_counter()
    for round, bank in enumerate(banks):
        population.releases([round], bank, commit(bank))
    seconds = time.perf_counter() - started
    busy = sum(process.memory_full_info().uss for process in processes)
    population.close()
    return seconds, (busy - idle) / 2**20
