"""Adaptive replicas: whole runs of all rounds in which the audited release itself steers the next bank.

What is computed along one path is conditional on its banks. A replica has banks of its own, grown from releases that
hold the probes; so what replicas prove holds without that condition. Each costs as much as the study's own rounds, so
they are few, and what so few trials can certify is little.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.attacks import ATTACKS, Attack, PoolKind
from coalmine.auditor.moments import moments
from coalmine.auditor.public import public_users
from coalmine.auditor.score import score
from coalmine.clients.client import Client
from coalmine.deploy.campaign import Campaign
from coalmine.deploy.planting import Probes, place
from coalmine.deploy.prepare import Prepared
from coalmine.deploy.study import Study
from coalmine.protocol.bank import Bank
from coalmine.protocol.ports import Advance
from coalmine.server.next_bank import next_bank
from coalmine.server.round import run_rounds
from coalmine.server.select import select


def run_replicas(
    attack: Attack, canary: Client, probes: Probes | None, campaign: Campaign, advance: Advance
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums of ``ell_mix`` after each round, without the canary and with it eligible.

    The journal keeps each replica's as soon as it is finished: a resumed study goes on with the next one, and draws no
    release of a finished one again.

    Args:
        canary: the attack's first. probes: as they were chosen for it on the first bank.

    Returns:
        (T, n) twice, for n replicas.
    """
    sums = []
    for guest, hypothesis in ((None, "absent"), (canary, "eligible")):
        columns = []
        for replica in range(campaign.study.audit.replicas):
            name = f"{attack.name}-replica-{replica + 1}-{hypothesis}"
            scores = campaign.journal.finding(name, tuple[float, ...])
            if scores is None:
                scores = tuple(_replica(attack, canary, guest, probes, replica, campaign).tolist())
                campaign.journal.keep_finding(name, scores, tuple[float, ...])
            columns.append(scores)
            advance(1)
        sums.append(np.array(columns).reshape(len(columns), campaign.study.rounds.count).T)
    return sums[0], sums[1]


def replica_number(study: Study, attack: str, eligible: bool, replica: int, round: int) -> int:
    """The number of one round of one replica: after all numbers of the path and its replays."""
    audit, rounds = study.audit, study.rounds.count
    first = rounds + 2 * audit.replays * rounds * len(ATTACKS) * audit.canaries
    place = (list(ATTACKS).index(attack) * 2 + eligible) * audit.replicas + replica
    return first + place * rounds + round


def _replica(
    attack: Attack, canary: Client, guest: Client | None, probes: Probes | None, replica: int, campaign: Campaign
) -> NDArray[np.float64]:
    """(T,) cumulated scores of one run whose first bank is the study's."""
    study, population = campaign.study, campaign.population
    mechanism, positions = study.carried(), campaign.rounds[0].positions
    ready, values = campaign.rounds[0], []
    for round in range(study.rounds.count):
        planted = place(attack, probes, ready)
        number = replica_number(study, attack.name, guest is not None, replica, round)
        population.set_time(round)
        population.admit(guest)
        try:
            (release,) = run_rounds([number], planted.bank, population, campaign.collector)
        finally:
            population.admit(None)
        campaign.collector.take()
        vote = canary.votes_on(planted.candidates, mechanism, population.bits) / 2.0**population.bits
        watched = np.flatnonzero(vote) if attack.pool is PoolKind.NONE else positions
        auxiliary = ready.auxiliary.votes(planted.probes, positions).on(watched, len(vote))
        background = moments(auxiliary, study.data.test, mechanism)
        value = score(background, vote[watched], mechanism).ell_mix(release.histogram[None, watched])
        values.append(float(value[0]) if vote[watched].any() else 0.0)
        if round + 1 < study.rounds.count:
            ready = _grown(planted.bank, release.histogram, number, probes, campaign, ready)
    return np.cumsum(values)


def _grown(
    bank: Bank,
    histogram: NDArray[np.float64],
    number: int,
    probes: Probes | None,
    campaign: Campaign,
    ready: Prepared,
) -> Prepared:
    """The next bank of a replica, prepared; calibration users have no part in it."""
    study, encoder, positions = campaign.study, campaign.workshop.encoder, ready.positions
    section = study.rounds
    survivors = select(histogram, bank.labels, positions, share=section.keep, threshold=section.threshold)
    exclude = set() if probes is None else set(probes.texts)
    grown = next_bank(
        bank, survivors, campaign.workshop.generator, study.seed, number, examples=section.examples, exclude=exclude
    ).bank
    candidates = encoder.encode(grown.texts, what="bank of a replica")
    public = ready.auxiliary
    auxiliary = public_users(
        public.records, public.offsets, candidates, positions, public.mechanism, public.bits, public.threads
    )
    return Prepared(grown, candidates, positions, auxiliary, auxiliary, ready.canaries)
