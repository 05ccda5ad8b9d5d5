"""What all attacks of a study share: its parts, its people, and the path of banks they are planted in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from coalmine.auditor.collector import Collector
from coalmine.auditor.design import probe_positions
from coalmine.deploy.journal import Journal
from coalmine.deploy.parts import conditions, randomness
from coalmine.deploy.path import Step, walk
from coalmine.deploy.prepare import People, Prepared, build_bank, embed_users, prepare
from coalmine.deploy.progress import Stages
from coalmine.deploy.simulation import SimulatedPopulation
from coalmine.deploy.study import Study
from coalmine.protocol.ports import Encoder, Generator
from coalmine.protocol.randomness import Purpose, stream
from coalmine.protocol.vote import grid_bits


@dataclass(frozen=True)
class Workshop:
    """The parts a study works with."""

    encoder: Encoder
    generator: Generator
    stages: Stages
    workers: int


@dataclass(frozen=True)
class Campaign:
    """What all attacks of a study share.

    Attributes:
        steps: the rounds of the path, on banks without probes.
        rounds: the same banks, prepared for the attacks; probes are chosen on the first.
        journal: keeps what is finished.
    """

    study: Study
    workshop: Workshop
    crowd: People
    steps: tuple[Step, ...]
    rounds: tuple[Prepared, ...]
    population: SimulatedPopulation
    collector: Collector
    journal: Journal


@contextmanager
def open_campaign(study: Study, crowd: People, workshop: Workshop, journal: Journal) -> Iterator[Campaign]:
    """Walk the path of banks; its clients wait for the attacks. A Ray cluster must be running.

    Raises:
        CoalmineError: bad input, or a party that refuses to go on.
    """
    stages, encoder, generator = workshop.stages, workshop.encoder, workshop.generator
    mechanism = study.privacy.mechanism()
    come_and_go = conditions(study, [user.id for user in crowd.splits.test])
    source = randomness(study)
    with stages.stage("bank", study.bank.size, "texts") as advance:
        bank, written = build_bank(study, generator, encoder, crowd, advance)
    users = embed_users(crowd.splits, encoder)
    bits = grid_bits(study.data.test + 1, study.carried())
    positions = probe_positions(len(bank), study.audit.probes, stream(study.seed, Purpose.PROBE_POSITIONS))
    with stages.stage("start clients"):
        population = SimulatedPopulation(
            users["test"], encoder, mechanism, source, positions, workshop.workers, come_and_go, study.sharing()
        )
        population.process_ids()
    try:
        collector = Collector()
        with stages.stage("rounds", study.rounds.count, "rounds") as advance:
            steps = walk(
                study,
                bank,
                written,
                positions,
                generator,
                population,
                collector,
                journal,
                exclude=_planted_later(crowd),
                advance=advance,
            )
        with stages.stage("public users"):
            rounds = [prepare(study, users, step.bank, encoder, positions, bits, workshop.workers) for step in steps]
        yield Campaign(study, workshop, crowd, tuple(steps), tuple(rounds), population, collector, journal)
    finally:
        population.close()


def _planted_later(crowd: People) -> frozenset[str]:
    """Texts of the canaries: an attack may plant them, so no bank of the path may hold one."""
    return frozenset(record for user in crowd.splits.canaries for record in user.records)
