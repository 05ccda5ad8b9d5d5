"""A sweep: many studies that differ in a few keys, with everything computed once that their keys do not change.

Votes depend on the bank, the clip, k and the users, not on q or the noise; so points that differ in q and sigma share
their observations, but for probes that are chosen by the separation, which does depend on them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from coalmine.auditor.attacks import ATTACKS, Attack, Selection
from coalmine.auditor.result import RoundAudit
from coalmine.deploy.attacking import Attacked, Audits, audit_seen, build_pools, watch_path
from coalmine.deploy.campaign import Campaign, Workshop, open_campaign
from coalmine.deploy.journal import Journal
from coalmine.deploy.path import claims
from coalmine.deploy.prepare import People
from coalmine.deploy.run import round_audit
from coalmine.deploy.study import Study
from coalmine.deploy.tasks import share, spread
from coalmine.protocol.privacy import Claim

_BESIDE_VOTES: Any = {
    "study": True,
    "output": True,
    "tracking": True,
    "execution": True,
    "utility": True,
    "disclosures": True,
    "privacy": {"q", "sigma", "delta", "max_eps"},
    "audit": {"attacks", "coordinates", "alpha", "split", "trials", "reduced_trials"},
}
"""Keys that change neither votes nor what is planted."""


def site(study: Study) -> str:
    """Points with the same site share users, bank and votes. Real rounds depend on the noise, so they share less."""
    keys = study.model_dump(mode="json", exclude=_BESIDE_VOTES)
    if study.rounds.count > 1 or study.audit.replays:
        keys["noise"] = [study.privacy.q, study.privacy.sigma]
    return json.dumps(keys, sort_keys=True)


def run_site(studies: Sequence[Study], crowd: People, workshop: Workshop, journal: Journal) -> list[RoundAudit]:
    """The audits of all points of one site, as tasks on the cluster.

    Args:
        studies: points with one ``site``.
    """
    stages = workshop.stages
    numbers = range(1, studies[0].audit.canaries + 1)
    names = list(dict.fromkeys(name for study in studies for name in study.audit.attacks))
    with open_campaign(studies[0], crowd, workshop, journal) as campaign:
        attacks = [ATTACKS[name] for name in names]
        pools, canaries, accounts = build_pools(campaign, attacks, numbers)
        jobs: list[tuple[Any, ...]] = []
        owners: list[tuple[int, str]] = []
        with stages.stage("votes", len(attacks) * len(numbers), "canaries") as advance:
            for number in numbers:
                for attack in attacks:
                    observed: dict[str, tuple[list[float], Any]] = {}
                    for index, study in enumerate(studies):
                        if attack.name not in study.audit.attacks:
                            continue
                        key = _watched(attack, study)
                        if key not in observed:
                            norms, seen = watch_path(
                                attack,
                                number,
                                canaries[attack.canary, number],
                                pools[attack.pool, number],
                                _under(campaign, study),
                            )
                            observed[key] = norms, share(seen)
                        norms, seen = observed[key]
                        jobs.append((attack.name, number, norms, seen, study, 1))
                        owners.append((index, attack.name))
                    advance(1)
        found: list[Audits | None] = [None] * len(jobs)
        with stages.stage("audits", len(jobs), "audits") as advance:
            for job, audits in spread(audit_seen, jobs):
                found[job] = audits
                advance(1)
    with stages.stage("accounting", len(studies), "claims") as advance:
        promised = []
        for study in studies:
            promised.append(claims(study)[0])
            advance(1)
    return [
        _point(campaign, study, index, owners, found, accounts, promised[index]) for index, study in enumerate(studies)
    ]


def _under(campaign: Campaign, study: Study) -> Campaign:
    """The campaign with a point's knobs: attacks are designed for its q and its noise."""
    mechanism = study.carried()
    rounds = tuple(
        replace(
            ready,
            auxiliary=replace(ready.auxiliary, mechanism=mechanism),
            calibration=replace(ready.calibration, mechanism=mechanism),
        )
        for ready in campaign.rounds
    )
    return replace(campaign, study=study, rounds=rounds)


def _watched(attack: Attack, study: Study) -> str:
    """Points with the same key see the same votes in this attack."""
    noise = [study.privacy.q, study.privacy.sigma] if attack.selection is Selection.MU else []
    return json.dumps([study.audit.coordinates, *noise])


def _point(
    campaign: Campaign,
    study: Study,
    index: int,
    owners: Sequence[tuple[int, str]],
    found: Sequence[Audits | None],
    accounts: Any,
    promised: Claim,
) -> RoundAudit:
    own: dict[str, list[Audits]] = {name: [] for name in study.audit.attacks}
    for (owner, name), audits in zip(owners, found, strict=True):
        if owner == index and audits is not None:
            own[name].append(audits)
    attacked = {name: Attacked(tuple(one.first for one in some)) for name, some in own.items()}
    return round_audit(campaign, study, attacked, accounts, promised)
