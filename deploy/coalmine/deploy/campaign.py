"""The attacks of a study: pools, planted banks, their rounds, and what the auditor makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.attacks import ATTACKS, Attack, CanaryKind, PoolKind
from coalmine.auditor.audit import Settings, View, audit_canary
from coalmine.auditor.collector import Collector
from coalmine.auditor.eps_bound import Split
from coalmine.auditor.result import CanaryAudit, PoolAccount
from coalmine.clients.client import Client
from coalmine.deploy.planting import Planted, Pool, build_pool, canary_client, embed_nonces, plant
from coalmine.deploy.prepare import People, Prepared
from coalmine.deploy.progress import Stages
from coalmine.deploy.simulation import SimulatedPopulation
from coalmine.deploy.study import Study
from coalmine.protocol.bank import Bank, commit
from coalmine.protocol.pool import TextPool
from coalmine.protocol.ports import Encoder, Generator
from coalmine.protocol.release import Release
from coalmine.server.round import run_rounds


@dataclass(frozen=True)
class Workshop:
    """The parts a study works with."""

    encoder: Encoder
    generator: Generator
    stages: Stages
    workers: int


def run_attacks(
    study: Study,
    workshop: Workshop,
    crowd: People,
    ready: Prepared,
    population: SimulatedPopulation,
    collector: Collector,
    rounds: Iterator[int],
) -> tuple[dict[str, tuple[CanaryAudit, ...]], Mapping[PoolKind, tuple[PoolAccount, ...]]]:
    """Every attack on every canary.

    While the statistics of one audit are computed in a thread, the rounds of the next one run in the shards.

    Args:
        rounds: numbers that no round has used yet.

    Returns:
        The audits by attack, and the accounts of generated pools by kind.
    """
    attacks = [ATTACKS[name] for name in study.audit.attacks]
    kinds = sorted({attack.pool for attack in attacks})
    found: dict[str, list[Future[CanaryAudit]]] = {attack.name: [] for attack in attacks}
    accounts: dict[PoolKind, list[PoolAccount]] = {}
    numbers = range(1, study.audit.canaries + 1)
    pools: dict[tuple[PoolKind, int], Pool] = {}
    canaries: dict[tuple[CanaryKind, int], Client] = {}
    total = study.audit.pool * len(numbers) * (PoolKind.PARAPHRASES in kinds)
    with workshop.stages.stage("probe pools", total, "texts") as advance:
        if PoolKind.NONCES in kinds:
            embed_nonces(study, workshop.encoder)
        for number in numbers:
            for canary in {attack.canary for attack in attacks}:
                canaries[canary, number] = canary_client(canary, number, study, ready, workshop.encoder)
            for kind in kinds:
                pool = build_pool(
                    kind,
                    number,
                    crowd.splits.canaries[number - 1],
                    study,
                    ready,
                    workshop.encoder,
                    workshop.generator,
                    advance,
                )
                pools[kind, number] = pool
                if pool.generated is not None:
                    what = f"paraphrases of canary {number}"
                    told = account(what, pool.generated, study.generator.min_cosine)
                    accounts.setdefault(kind, []).append(told)
    with (
        workshop.stages.stage("attacks", len(attacks) * len(numbers), "audits") as advance,
        ThreadPoolExecutor(1) as auditor,
    ):
        for number in numbers:
            for attack in attacks:
                client = canaries[attack.canary, number]
                planted = plant(attack, number, client, pools[attack.pool, number], study, ready)
                norm, views = _observe(attack, client, planted, study, ready, population, collector, rounds)
                audit = auditor.submit(
                    audit_canary,
                    attack.name,
                    number,
                    study.audit.coordinates,
                    norm,
                    views,
                    study.privacy.mechanism(),
                    _settings(study, workshop.workers),
                )
                audit.add_done_callback(lambda _: advance(1))
                found[attack.name].append(audit)
        audits = {name: tuple(audit.result() for audit in some) for name, some in found.items()}
    return audits, {kind: tuple(some) for kind, some in accounts.items()}


def _observe(
    attack: Attack,
    canary: Client,
    planted: Planted,
    study: Study,
    ready: Prepared,
    population: SimulatedPopulation,
    collector: Collector,
    rounds: Iterator[int],
) -> tuple[float, dict[str, View]]:
    """Commit to the planted bank, run its rounds, and gather what the auditor may see.

    Returns:
        The L2 norm of the canary's vote, and the views by name of their coordinates.
    """
    mechanism, audit = study.privacy.mechanism(), study.audit
    vote = canary.votes_on(planted.candidates, mechanism, population.bits) / 2.0**population.bits
    absent = _replay(planted.bank, None, audit.replays, population, collector, rounds)
    eligible = _replay(planted.bank, canary, audit.replays, population, collector, rounds)
    sets = _coordinates(attack, vote, ready.positions, audit.coordinates)
    everything = np.unique(np.concatenate(list(sets.values())))
    test = population.votes_on(planted.bank, commit(planted.bank), everything)
    auxiliary = ready.auxiliary.votes(planted.probes, ready.positions).on(everything, len(vote))
    calibration = ready.calibration.votes(planted.probes, ready.positions).on(everything, len(vote))
    views = {}
    for name, coordinates in sets.items():
        columns = np.searchsorted(everything, coordinates)
        views[name] = View(
            coordinates,
            vote[coordinates],
            auxiliary[:, columns],
            calibration[:, columns],
            test[:, columns],
            _watch(absent, coordinates),
            _watch(eligible, coordinates),
        )
    return float(np.linalg.norm(vote)), views


def _settings(study: Study, threads: int) -> Settings:
    """Each canary of an attack gets its share of the family's alpha."""
    audit = study.audit
    return Settings(
        alpha=audit.alpha / audit.canaries,
        split=Split(audit.split),
        trials=audit.trials,
        reduced_trials=audit.reduced_trials,
        seed=study.seed,
        threads=threads,
    )


def _replay(
    bank: Bank,
    guest: Client | None,
    replays: int,
    population: SimulatedPopulation,
    collector: Collector,
    rounds: Iterator[int],
) -> list[Release]:
    """Real rounds through the shards, the aggregator and its noise."""
    if replays == 0:
        return []
    population.admit(guest)
    try:
        run_rounds([next(rounds) for _ in range(replays)], bank, population, collector)
    finally:
        population.admit(None)
    return collector.take()


def _watch(releases: list[Release], coordinates: NDArray[np.int64]) -> NDArray[np.float64]:
    """(trials, r) what the auditor sees of releases."""
    return np.array([release.histogram[coordinates] for release in releases]).reshape(len(releases), len(coordinates))


def _coordinates(
    attack: Attack, vote: NDArray[np.float64], positions: NDArray[np.int64], chosen: str
) -> dict[str, NDArray[np.int64]]:
    """The sets of coordinates to audit, by name. Without probes both are the canary's natural support."""
    support = np.flatnonzero(vote)
    if attack.pool is PoolKind.NONE:
        return {chosen: support}
    return {"probes": positions, "support": np.union1d(positions, support)}


def account(what: str, pool: TextPool, min_cosine: float | None) -> PoolAccount:
    """How a set of texts came about, as it is reported."""
    return PoolAccount(what, len(pool.texts), pool.generator_id, pool.tally, min_cosine, pool.cosine_quantiles())
