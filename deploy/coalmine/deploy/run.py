"""Runs a study: prepare, let every planted bank be voted on, audit what comes out."""

from __future__ import annotations

import hashlib
import importlib.metadata
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from coalmine.auditor.attacks import ATTACKS
from coalmine.auditor.collector import Collector
from coalmine.auditor.result import RoundAudit
from coalmine.auditor.summarise import attack_audit, replay_p_value
from coalmine.deploy.campaign import Workshop, account, run_attacks
from coalmine.deploy.parts import randomness
from coalmine.deploy.prepare import People, build_bank, embed_users, prepare
from coalmine.deploy.simulation import SimulatedPopulation
from coalmine.deploy.study import Study
from coalmine.protocol.accounting import claim
from coalmine.protocol.bank import Bank, commit
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


def run(study: Study, crowd: People, workshop: Workshop) -> Outcome:
    """Audit one round among the study's people. A Ray cluster must be running.

    Raises:
        CoalmineError: bad input, or a party that refuses to go on.
    """
    stages, encoder, generator = workshop.stages, workshop.encoder, workshop.generator
    mechanism = study.privacy.mechanism()
    accounting = ThreadPoolExecutor(1).submit(claim, mechanism, 1, PrivacyUnit.USER, ThreatModel.RELEASE_ONLY)
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
        audits, accounts = run_attacks(study, workshop, crowd, ready, population, collector, rounds)
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
            bank=account("bank", bank_pool, None),
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
