"""The one-run audit of a study: plant the probes of many nonce canaries, include half of them, release, guess."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.collector import Collector
from coalmine.auditor.design import probe_positions
from coalmine.auditor.nonce import nonce_family
from coalmine.auditor.one_run_audit import OneRunStudy, audit
from coalmine.auditor.one_run_pe import canary_scores, guess, linear_scores
from coalmine.auditor.public import public_users
from coalmine.clients.shard import Hosted
from coalmine.deploy.campaign import Workshop
from coalmine.deploy.parts import conditions, randomness
from coalmine.deploy.prepare import People, build_bank, embed_users
from coalmine.deploy.run import facts
from coalmine.deploy.simulation import SimulatedPopulation
from coalmine.deploy.study import OneRunSection, Study
from coalmine.protocol.accounting import claim
from coalmine.protocol.bank import Bank, commit
from coalmine.protocol.errors import BankError, StudyError
from coalmine.protocol.ports import Encoder
from coalmine.protocol.privacy import PrivacyUnit
from coalmine.protocol.randomness import Purpose, stream
from coalmine.protocol.vote import grid_bits
from coalmine.server.round import run_rounds

_FIRST_ROUND = 1 << 50
"""Far from the rounds of attacks: in a simulation a round's number decides its noise, which must not occur twice."""


@dataclass(frozen=True)
class Families:
    """The canaries of a one-run audit.

    Attributes:
        hosted: all m of them. probes: (m * s,) texts, canary after canary, with their (m * s, d) embeddings.
    """

    hosted: Hosted
    probes: tuple[str, ...]
    embedded: NDArray[np.float32]


def one_run_section(study: Study) -> OneRunSection:
    """The study's section.

    Raises:
        StudyError: there is none.
    """
    if study.audit.one_run is None:
        raise StudyError(
            "the study has no section audit.one_run",
            where=study.study,
            remedy="add it, e.g. --set audit.one_run.canaries=200; `coalmine calc one-run-plan` says how many",
        )
    return study.audit.one_run


def run_one_run(study: Study, crowd: People, workshop: Workshop) -> OneRunStudy:
    """Audit the study's mechanism with many canaries at once. A Ray cluster must be running.

    The inclusion coins and the nonces derive from the study's seed; no party of the round but the auditor needs them.

    Raises:
        CoalmineError: bad input, or a party that refuses to go on.
    """
    section, stages, encoder = one_run_section(study), workshop.stages, workshop.encoder
    with stages.stage("bank", study.bank.size, "texts") as advance:
        bank, _ = build_bank(study, workshop.generator, encoder, crowd, advance)
    users = embed_users(crowd.splits, encoder)
    families = build_families(section, study.seed, encoder)
    positions = probe_positions(
        len(bank), len(families.probes), stream(study.seed, Purpose.PROBE_POSITIONS, user="one run")
    )
    planted = _plant(bank, positions, families)
    candidates = encoder.encode(planted.texts, what="bank")
    included = stream(study.seed, Purpose.SELECTION, user="one run").random(section.canaries) < 0.5
    everybody = _together(users["test"], families.hosted, included)
    mechanism, carried = study.privacy.mechanism(), study.carried()
    bits = grid_bits(len(everybody.ids) + 1, carried)

    def votes(hosted: Hosted) -> NDArray[np.float64]:
        public = public_users(hosted.records, hosted.offsets, candidates, positions, mechanism, bits, workshop.workers)
        return public.votes(families.embedded, positions).on(positions, len(planted))

    with stages.stage("public users"):
        auxiliary, canaries = votes(users["aux"]), votes(families.hosted)
    come_and_go = conditions(study, everybody.ids)
    source = randomness(study)
    with stages.stage("start clients"):
        population = SimulatedPopulation(
            everybody, encoder, mechanism, source, positions, workshop.workers, come_and_go, study.sharing()
        )
    try:
        with stages.stage("releases", section.releases, "releases"):
            numbers = range(_FIRST_ROUND, _FIRST_ROUND + section.releases)
            released = run_rounds(numbers, planted, population, Collector())
    finally:
        population.close()
    with stages.stage("one-run audit"):
        seen = np.array([release.histogram[positions] for release in released])
        known = seen, canaries, auxiliary, study.data.test, carried
        guesses = guess(canary_scores(*known), included, *section.guesses)
        linear = linear_scores(*known)
        shown = np.isfinite(linear)  # a canary without a vote on its probes has no such score
        promised = claim(mechanism, section.releases, PrivacyUnit.USER, study.threat_model)
        inside, outside = linear[shown & included], linear[shown & ~included]
        found = audit(guesses, *section.guesses, promised, study.audit.alpha, inside, outside)
    return OneRunStudy(
        study=study.study,
        mechanism=mechanism,
        eligible=study.data.test,
        bank_size=len(planted),
        records=section.records,
        probes_each=section.probes_each,
        randomness=source.kind,
        bank_digest=commit(planted).digest,
        dataset_digest=crowd.digest,
        audit=found,
        facts=facts(study, crowd, encoder, workshop.generator),
        seconds=dict(stages.seconds),
    )


def build_families(section: OneRunSection, seed: int, encoder: Encoder) -> Families:
    """Records and probes of every canary: nonces of one family, so that a canary votes for its own probes."""
    texts = [nonce_family(seed, canary, section.records + section.probes_each) for canary in range(section.canaries)]
    embedded = encoder.encode([text for family in texts for text in family], what="nonces")
    by_canary = embedded.reshape(section.canaries, -1, embedded.shape[1])
    records, probes = by_canary[:, : section.records], by_canary[:, section.records :]
    hosted = Hosted(
        tuple(f"one-run canary {canary}" for canary in range(section.canaries)),
        np.ascontiguousarray(records.reshape(-1, embedded.shape[1])),
        np.arange(section.canaries + 1, dtype=np.int64) * section.records,
    )
    return Families(
        hosted,
        tuple(text for family in texts for text in family[section.records :]),
        np.ascontiguousarray(probes.reshape(-1, embedded.shape[1])),
    )


def _plant(bank: Bank, positions: NDArray[np.int64], families: Families) -> Bank:
    try:
        return bank.replace(dict(zip(positions.tolist(), families.probes, strict=True)))
    except BankError as error:
        raise BankError("a nonce stands in the bank already", where=error.where, remedy="use another seed") from None


def _together(users: Hosted, canaries: Hosted, included: NDArray[np.bool_]) -> Hosted:
    """The users and those canaries that were included."""
    spans = [span for span, here in zip(itertools.pairwise(canaries.offsets), included, strict=True) if here]
    rows = [canaries.records[low:high] for low, high in spans]
    return replace(
        users,
        ids=users.ids + tuple(id for id, here in zip(canaries.ids, included, strict=True) if here),
        records=np.concatenate([users.records, *rows]),
        offsets=np.concatenate([users.offsets, users.offsets[-1] + np.cumsum([len(some) for some in rows])]).astype(
            np.int64
        ),
    )
