"""The attacks of a study: pools, planted banks, their rounds, and what the auditor makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.attacks import ATTACKS, Attack, CanaryKind, PoolKind
from coalmine.auditor.audit import Settings, View, audit_canary
from coalmine.auditor.collector import Collector
from coalmine.auditor.eps_bound import Split
from coalmine.auditor.result import CanaryAudit, PoolAccount
from coalmine.auditor.rounds.audit import audit_path
from coalmine.auditor.rounds.replay import replicas_evidence
from coalmine.auditor.rounds.result import PathAudit
from coalmine.clients.client import Client
from coalmine.deploy.campaign import Campaign
from coalmine.deploy.journal import Journal
from coalmine.deploy.planting import Planted, Pool, build_pool, canary_client, choose, embed_nonces, place
from coalmine.deploy.replicas import run_replicas
from coalmine.deploy.simulation import SimulatedPopulation
from coalmine.deploy.study import Study
from coalmine.protocol.bank import Bank, commit
from coalmine.protocol.finding import Evidence
from coalmine.protocol.pool import TextPool
from coalmine.protocol.ports import Advance
from coalmine.protocol.release import Release
from coalmine.server.round import run_rounds


@dataclass(frozen=True)
class Attacked:
    """What came of one attack on all its canaries.

    Attributes:
        canaries: the audit of round one, canary by canary. paths: of all rounds, where there are several.
        replicas: per prefix what adaptive replicas of the first canary prove, or empty.
    """

    canaries: tuple[CanaryAudit, ...]
    paths: tuple[PathAudit, ...] = ()
    replicas: tuple[Evidence, ...] = ()


def run_attacks(campaign: Campaign) -> tuple[dict[str, Attacked], Mapping[PoolKind, tuple[PoolAccount, ...]]]:
    """Every attack on every canary.

    While the statistics of one audit are computed in a thread, the rounds of the next one run in the shards.

    Returns:
        What came of each attack, and the accounts of generated pools by kind.
    """
    study, stages, workers = campaign.study, campaign.workshop.stages, campaign.workshop.workers
    attacks = [ATTACKS[name] for name in study.audit.attacks]
    numbers = range(1, study.audit.canaries + 1)
    pools, canaries, accounts = build_pools(campaign, attacks, numbers)
    found: dict[str, list[Future[Audits]]] = {attack.name: [] for attack in attacks}
    with (
        stages.stage("attacks", len(attacks) * len(numbers), "audits") as advance,
        ThreadPoolExecutor(1) as auditor,
    ):
        for number in numbers:
            for attack in attacks:
                name = f"{attack.name}-{number}"
                audits = campaign.journal.finding(name, Audits)
                if audits is not None:
                    done: Future[Audits] = Future()
                    done.set_result(audits)
                    advance(1)
                else:
                    client = canaries[attack.canary, number]
                    norms, seen = watch_path(attack, number, client, pools[attack.pool, number], campaign)
                    done = auditor.submit(audit_seen, attack.name, number, norms, seen, study, workers)
                    done.add_done_callback(partial(_keep, campaign.journal, name, advance))
                found[attack.name].append(done)
        results = {name: [audit.result() for audit in some] for name, some in found.items()}
    attacked = {
        name: Attacked(
            tuple(one.first for one in some),
            tuple(one.path for one in some if one.path is not None),
            _adaptive(ATTACKS[name], canaries, pools, some[0].path, campaign),
        )
        for name, some in results.items()
    }
    return attacked, accounts


def _adaptive(
    attack: Attack,
    canaries: Mapping[tuple[CanaryKind, int], Client],
    pools: Mapping[tuple[PoolKind, int], Pool],
    path: PathAudit | None,
    campaign: Campaign,
) -> tuple[Evidence, ...]:
    """Replicas of the first canary, against the thresholds of its path."""
    study, count = campaign.study, campaign.study.audit.replicas
    if path is None or count == 0:
        return ()
    name = f"{attack.name}-replicas"
    kept = campaign.journal.finding(name, tuple[Evidence, ...])
    if kept is None:
        client = canaries[attack.canary, 1]
        probes = choose(attack, 1, client, pools[attack.pool, 1], study, campaign.rounds[0])
        with campaign.workshop.stages.stage(f"replicas of {attack.name}", 2 * count, "runs") as advance:
            absent, eligible = run_replicas(attack, client, probes, campaign, advance)
        thresholds = [prefix.threshold if prefix.threshold is not None else 0.0 for prefix in path.prefixes]
        settings = _settings(study, campaign.workshop.workers)
        kept = replicas_evidence(absent, eligible, thresholds, study.privacy.delta, settings.alpha, settings.split)
        campaign.journal.keep_finding(name, kept, tuple[Evidence, ...])
    return tuple(kept)


@dataclass(frozen=True)
class Audits:
    """One attack on one canary: round one by itself, and all rounds where there are several."""

    first: CanaryAudit
    path: PathAudit | None


def _keep(journal: Journal, name: str, advance: Advance, done: Future[Audits]) -> None:
    if done.exception() is None:
        journal.keep_finding(name, done.result(), Audits)
        advance(1)


def audit_seen(
    attack: str,
    number: int,
    norms: Sequence[float],
    seen: Sequence[dict[str, View]],
    study: Study,
    threads: int,
) -> Audits:
    """The statistics of one attack on one canary."""
    mechanism, settings, chosen = study.carried(), _settings(study, threads), study.audit.coordinates
    first = audit_canary(attack, number, chosen, norms[0], seen[0], mechanism, settings)
    several = len(seen) > 1
    return Audits(first, audit_path(attack, number, chosen, norms, seen, mechanism, settings) if several else None)


def build_pools(
    campaign: Campaign, attacks: Sequence[Attack], numbers: range
) -> tuple[
    dict[tuple[PoolKind, int], Pool],
    dict[tuple[CanaryKind, int], Client],
    Mapping[PoolKind, tuple[PoolAccount, ...]],
]:
    """Canaries and probe pools, by kind and number, all before the first attack."""
    study, workshop, ready = campaign.study, campaign.workshop, campaign.rounds[0]
    kinds = sorted({attack.pool for attack in attacks})
    accounts: dict[PoolKind, list[PoolAccount]] = {}
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
                    campaign.crowd.splits.canaries[number - 1],
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
    return pools, canaries, {kind: tuple(some) for kind, some in accounts.items()}


def watch_path(
    attack: Attack, number: int, canary: Client, pool: Pool, campaign: Campaign
) -> tuple[list[float], list[dict[str, View]]]:
    """What the auditor may see of every round of the path.

    Returns:
        For each round the L2 norm of the canary's vote, and the views by name of their coordinates.
    """
    probes = choose(attack, number, canary, pool, campaign.study, campaign.rounds[0])
    observed = [
        _observe(attack, number, canary, place(attack, probes, ready), round, campaign)
        for round, ready in enumerate(campaign.rounds)
    ]
    return [norm for norm, _ in observed], [views for _, views in observed]


def _observe(
    attack: Attack, number: int, canary: Client, planted: Planted, round: int, campaign: Campaign
) -> tuple[float, dict[str, View]]:
    """Commit to the planted bank, run its rounds, and gather what the auditor may see.

    Returns:
        The L2 norm of the canary's vote, and the views by name of their coordinates.
    """
    study, ready, population = campaign.study, campaign.rounds[round], campaign.population
    mechanism, audit = study.privacy.mechanism(), study.audit
    population.set_time(round)
    vote = canary.votes_on(planted.candidates, mechanism, population.bits) / 2.0**population.bits
    numbers = replay_numbers(study, attack.name, number, round)
    absent = _replay(planted.bank, None, numbers[: audit.replays], population, campaign.collector)
    eligible = _replay(planted.bank, canary, numbers[audit.replays :], population, campaign.collector)
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


def replay_numbers(study: Study, attack: str, canary: int, round: int) -> range:
    """The numbers of the rounds that replay one attack on one bank of the path: first without, then with the canary.

    Each number names one participation and one noise. They follow the numbers of the path itself, and depend on
    nothing that may differ when a study is resumed.
    """
    audit = study.audit
    place = (round * len(ATTACKS) + list(ATTACKS).index(attack)) * audit.canaries + canary - 1
    first = study.rounds.count + 2 * audit.replays * place
    return range(first, first + 2 * audit.replays)


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
    bank: Bank, guest: Client | None, rounds: range, population: SimulatedPopulation, collector: Collector
) -> list[Release]:
    """Real rounds through the shards, the aggregator and its noise."""
    if not rounds:
        return []
    population.admit(guest)
    try:
        run_rounds(rounds, bank, population, collector)
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
