"""Runs a study: walk the path of banks, let every planted bank be voted on, audit what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from coalmine.auditor.attacks import ATTACKS, PoolKind
from coalmine.auditor.disclosure.audit import Audited
from coalmine.auditor.result import PoolAccount, RoundAudit
from coalmine.auditor.rounds.study import RoundsAudit
from coalmine.auditor.summarise import attack_audit, replay_p_value
from coalmine.deploy.attacking import Attacked, account, run_attacks
from coalmine.deploy.campaign import Campaign, Workshop, open_campaign
from coalmine.deploy.journal import Journal
from coalmine.deploy.manifest import seed_digest, versions
from coalmine.deploy.parts import comings_and_goings, randomness
from coalmine.deploy.path import Step, claims
from coalmine.deploy.prepare import People
from coalmine.deploy.round_disclosures import disclosures
from coalmine.deploy.study import Study
from coalmine.deploy.utility import utility
from coalmine.protocol.bank import commit
from coalmine.protocol.ports import Encoder, Generator
from coalmine.protocol.privacy import Claim


@dataclass(frozen=True)
class Outcome:
    """What a study leaves behind.

    Attributes:
        audit: of the first round. steps: the rounds on the banks without probes.
        rounds: of all of them, where there are several. disclosures: of each round's synthetic output, or empty.
    """

    audit: RoundAudit
    steps: tuple[Step, ...]
    rounds: RoundsAudit | None
    disclosures: tuple[Audited, ...] = ()


def run(study: Study, crowd: People, workshop: Workshop, journal: Journal) -> Outcome:
    """Run the rounds of a study among its people and audit them. A Ray cluster must be running.

    Raises:
        CoalmineError: bad input, or a party that refuses to go on.
    """
    accounting = ThreadPoolExecutor(1).submit(claims, study)
    with open_campaign(study, crowd, workshop, journal) as campaign:
        attacked, accounts = run_attacks(campaign)
    with workshop.stages.stage("accounting"):
        promised = accounting.result()
    audit = round_audit(campaign, study, attacked, accounts, promised[0])
    disclosed = disclosures(campaign) if study.disclosures.classes else ()
    return Outcome(audit, campaign.steps, rounds_audit(campaign, attacked, promised), disclosed)


def rounds_audit(
    campaign: Campaign, attacked: Mapping[str, Attacked], promised: tuple[Claim, ...]
) -> RoundsAudit | None:
    """What all rounds show together; ``None`` for a study of one round that measures no utility."""
    study = campaign.study
    if study.rounds.count == 1:
        return None
    return RoundsAudit(
        study=study.study,
        mechanism=study.privacy.mechanism(),
        claims=promised,
        eligible=study.data.test,
        randomness=randomness(study).kind,
        bank_digests=tuple(commit(step.bank).digest for step in campaign.steps),
        dataset_digest=campaign.crowd.digest,
        alpha=study.audit.alpha,
        trials=study.audit.trials,
        paths={name: found.paths for name, found in attacked.items()},
        replicas={name: found.replicas for name, found in attacked.items() if found.replicas},
        utility=utility(campaign) if study.utility.measure else (),
    )


def round_audit(
    campaign: Campaign,
    study: Study,
    attacked: Mapping[str, Attacked],
    accounts: Mapping[PoolKind, tuple[PoolAccount, ...]],
    promised: Claim,
) -> RoundAudit:
    """What the first round shows, under the knobs of ``study`` (a sweep's point may differ from the campaign's)."""
    mechanism, first, workshop = study.privacy.mechanism(), campaign.steps[0], campaign.workshop
    attacks = tuple(
        attack_audit(name, promised, found.canaries, accounts.get(ATTACKS[name].pool, ()))
        for name, found in attacked.items()
    )
    return RoundAudit(
        study=study.study,
        mechanism=mechanism,
        claim=promised,
        eligible=study.data.test,
        expected_cohort=study.data.test * mechanism.q,
        bank_size=len(first.bank),
        probes=study.audit.probes,
        randomness=randomness(study).kind,
        alpha=study.audit.alpha,
        trials=study.audit.trials,
        bank=account("bank", first.written, None),
        bank_digest=commit(first.bank).digest,
        dataset_digest=campaign.crowd.digest,
        attacks=attacks,
        replay_p_value=replay_p_value(attacks),
        facts=facts(study, campaign.crowd, workshop.encoder, workshop.generator),
        seconds=dict(workshop.stages.seconds),
    )


def facts(study: Study, crowd: People, encoder: Encoder, generator: Generator) -> dict[str, str]:
    """What a reader needs to repeat the study. The seed itself stays with the study file."""
    data = study.data
    return {
        "data": crowd.source,
        "users": f"{data.auxiliary} auxiliary, {data.calibration} calibration, {data.test} test",
        "encoder": encoder.id,
        "generator": generator.id,
        **comings_and_goings(study),
        "seed digest": seed_digest(study.seed),
        **{f"version {name}": version for name, version in versions().items()},
    }
