"""Runs a study: prepare, let every planted bank be voted on, audit what comes out."""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.attacks import ATTACKS, Attack, CanaryKind, PoolKind
from coalmine.auditor.audit import Settings, View, audit_canary
from coalmine.auditor.collector import Collector
from coalmine.auditor.eps_bound import Split
from coalmine.auditor.result import CanaryAudit, PoolAccount, RoundAudit
from coalmine.auditor.summarise import attack_audit, replay_p_value
from coalmine.clients.client import Client
from coalmine.deploy.parts import randomness
from coalmine.deploy.planting import Planted, Pool, build_pool, canary_client, embed_nonces, plant
from coalmine.deploy.prepare import People, Prepared, build_bank, embed_users, people, prepare
from coalmine.deploy.progress import Stages
from coalmine.deploy.simulation import SimulatedPopulation
from coalmine.deploy.study import Study
from coalmine.protocol.accounting import claim
from coalmine.protocol.bank import Bank, commit
from coalmine.protocol.pool import TextPool
from coalmine.protocol.ports import Encoder, Generator
from coalmine.protocol.privacy import PrivacyUnit, ThreatModel
from coalmine.protocol.release import Release
from coalmine.protocol.vote import grid_bits
from coalmine.server.round import run_rounds

_PACKAGES = ("coalmine", "numpy", "numba", "torch", "ray", "sentence-transformers", "opacus", "dp-accounting")


@dataclass(frozen=True)
class Outcome:
    """What a study leaves behind.

    Attributes:
        release: the noisy histogram of the round on the bank without probes.
    """

    audit: RoundAudit
    release: Release
    bank: Bank


@dataclass(frozen=True)
class Workshop:
    """The parts a study works with."""

    encoder: Encoder
    generator: Generator
    stages: Stages
    workers: int


def run(study: Study, workshop: Workshop) -> Outcome:
    """Audit one round. A Ray cluster must be running.

    Raises:
        CoalmineError: bad input, or a party that refuses to go on.
    """
    stages, encoder, generator = workshop.stages, workshop.encoder, workshop.generator
    mechanism = study.privacy.mechanism()
    accounting = ThreadPoolExecutor(1).submit(claim, mechanism, 1, PrivacyUnit.USER, ThreatModel.RELEASE_ONLY)
    with stages.stage("data"):
        crowd = people(study)
    with stages.stage("bank", study.bank.size, "texts") as advance:
        bank, bank_pool = build_bank(study, generator, encoder, crowd, advance)
    source = randomness(study)
    users = embed_users(crowd.splits, encoder)
    with stages.stage("public users"):
        bits = grid_bits(study.data.test + 1, mechanism)
        ready = prepare(study, users, bank, encoder, bits, workshop.workers)
    with stages.stage("start clients"):
        population = SimulatedPopulation(users["test"], encoder, mechanism, source, ready.positions, workshop.workers)
        population.process_ids()
    try:
        collector = Collector()
        rounds = iter(range(1 << 40))
        with stages.stage("first round"):
            run_rounds([next(rounds)], bank, population, collector)
            (release,) = collector.take()
        audits, accounts = _attacks(study, workshop, crowd, ready, population, collector, rounds)
    finally:
        population.close()
    with stages.stage("accounting"):
        promised = accounting.result()
    attacks = tuple(
        attack_audit(name, promised, found, accounts.get(ATTACKS[name].pool, ())) for name, found in audits.items()
    )
    return Outcome(
        RoundAudit(
            study=study.study,
            mechanism=mechanism,
            claim=promised,
            eligible=study.data.test,
            expected_cohort=study.data.test * mechanism.q,
            bank_size=len(bank),
            probes=study.audit.probes,
            randomness=source.kind,
            alpha=study.audit.alpha,
            trials=study.audit.trials,
            bank=_account("bank", bank_pool, None),
            bank_digest=commit(bank).digest,
            dataset_digest=crowd.digest,
            attacks=attacks,
            replay_p_value=replay_p_value(attacks),
            facts=_facts(study, crowd, encoder, generator),
            seconds=dict(stages.seconds),
        ),
        release,
        bank,
    )


def _attacks(
    study: Study,
    workshop: Workshop,
    crowd: People,
    ready: Prepared,
    population: SimulatedPopulation,
    collector: Collector,
    rounds: Iterator[int],
) -> tuple[dict[str, tuple[CanaryAudit, ...]], Mapping[PoolKind, tuple[PoolAccount, ...]]]:
    """Every attack on every canary, canary by canary, so that a pool is needed once and then forgotten."""
    attacks = [ATTACKS[name] for name in study.audit.attacks]
    kinds = sorted({attack.pool for attack in attacks})
    found: dict[str, list[CanaryAudit]] = {attack.name: [] for attack in attacks}
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
                    account = _account(what, pool.generated, study.generator.min_cosine)
                    accounts.setdefault(kind, []).append(account)
    with workshop.stages.stage("attacks", len(attacks) * len(numbers), "audits") as advance:
        for number in numbers:
            for attack in attacks:
                client = canaries[attack.canary, number]
                planted = plant(attack, number, client, pools[attack.pool, number], study, ready)
                found[attack.name].append(
                    _audit(attack, number, client, planted, study, ready, population, collector, rounds, workshop)
                )
                advance(1)
    return {name: tuple(some) for name, some in found.items()}, {kind: tuple(some) for kind, some in accounts.items()}


def _audit(
    attack: Attack,
    number: int,
    canary: Client,
    planted: Planted,
    study: Study,
    ready: Prepared,
    population: SimulatedPopulation,
    collector: Collector,
    rounds: Iterator[int],
    workshop: Workshop,
) -> CanaryAudit:
    """Commit to the planted bank, run its rounds, and hand the auditor what it may see."""
    mechanism, audit = study.privacy.mechanism(), study.audit
    units = canary.votes_on(planted.candidates, mechanism, population.bits)
    vote = units / 2.0**population.bits
    absent = _replay(planted.bank, None, audit.replays, population, collector, rounds)
    eligible = _replay(planted.bank, canary, audit.replays, population, collector, rounds)
    sets = _coordinates(attack, vote, ready.positions, audit.coordinates)
    everything = np.unique(np.concatenate(list(sets.values())))
    commitment = commit(planted.bank)
    test = population.votes_on(planted.bank, commitment, everything)
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
    settings = Settings(
        alpha=audit.alpha / audit.canaries,
        split=Split(audit.split),
        trials=audit.trials,
        reduced_trials=audit.reduced_trials,
        seed=study.seed,
        threads=workshop.workers,
    )
    return audit_canary(attack.name, number, audit.coordinates, float(np.linalg.norm(vote)), views, mechanism, settings)


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


def _account(what: str, pool: TextPool, min_cosine: float | None) -> PoolAccount:
    return PoolAccount(what, len(pool.texts), pool.generator_id, pool.tally, min_cosine, pool.cosine_quantiles())


def _facts(study: Study, crowd: People, encoder: Encoder, generator: Generator) -> dict[str, str]:
    """What a reader needs to repeat the study. The seed itself stays with the study file."""
    versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
    data = study.data
    return {
        "data": crowd.source,
        "users": f"{data.auxiliary} auxiliary, {data.calibration} calibration, {data.test} test",
        "encoder": encoder.id,
        "generator": generator.id,
        "seed digest": hashlib.sha256(f"coalmine seed {study.seed}".encode()).hexdigest()[:16],
        **{f"version {name}": version for name, version in versions.items()},
    }
