"""The path of banks: round after round, what the server publishes, and what the next bank grows from.

All attacks of a study are planted in the banks of one path. They are grown from the releases of the rounds without
probes, so every attack meets the same banks, and what is computed along the path is conditional on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.collector import Collector
from coalmine.deploy.journal import Journal
from coalmine.deploy.simulation import SimulatedPopulation
from coalmine.deploy.study import Study
from coalmine.protocol.accounting import claim
from coalmine.protocol.bank import Bank, commit
from coalmine.protocol.errors import CommitmentMismatch, StudyError
from coalmine.protocol.pool import TextPool
from coalmine.protocol.ports import Generator
from coalmine.protocol.privacy import Claim, PrivacyUnit
from coalmine.protocol.randomness import Purpose, stream
from coalmine.protocol.release import Release
from coalmine.server.next_bank import next_bank
from coalmine.server.round import run_rounds
from coalmine.server.select import select, synthetic_output


@dataclass(frozen=True)
class Step:
    """One round of the path.

    Attributes:
        bank: what was voted on. written: how its texts came about.
        output: (n,) bank indices, the round's synthetic texts.
    """

    bank: Bank
    written: TextPool
    release: Release
    output: NDArray[np.int64]

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(self.bank.texts[index] for index in self.output)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.bank.labels[index] for index in self.output)


def claims(study: Study) -> tuple[Claim, ...]:
    """What the accounting promises after 1, ..., T rounds.

    Raises:
        StudyError: a round would exceed ``privacy.max_eps``.
    """
    budget, mechanism = study.privacy.max_eps, study.privacy.mechanism()
    promised: list[Claim] = []
    for rounds in range(1, study.rounds.count + 1):
        promised.append(claim(mechanism, rounds, PrivacyUnit.USER, study.threat_model))
        spent = promised[-1].eps_pld_upper
        if budget is not None and spent > budget:
            before = f"{promised[-2].eps_pld_upper:.4f} after {rounds - 1}" if rounds > 1 else "0"
            raise StudyError(
                f"round {rounds} of {study.rounds.count} is not started: the claim would be epsilon {spent:.4f}"
                f" ({before}), the budget is {budget:g}",
                where="privacy.max_eps",
                remedy=f"set rounds.count to at most {rounds - 1}, add noise, or raise the budget",
            )
    return tuple(promised)


def walk(
    study: Study,
    first: Bank,
    written: TextPool,
    positions: NDArray[np.int64],
    generator: Generator,
    population: SimulatedPopulation,
    collector: Collector,
    journal: Journal,
    *,
    exclude: frozenset[str] = frozenset(),
    advance: Callable[[int], None] = lambda _: None,
) -> list[Step]:
    """Run the rounds of a study on banks without probes. A round that the journal holds is not drawn again.

    Args:
        first: the bank of round one; written: how it came about. positions: (r,) declared for probes, which never
            compete.
        exclude: texts that no bank may hold, because an attack will plant them.

    Raises:
        CommitmentMismatch: a release in the journal belongs to another bank.
        GeneratorError: too few distinct texts for a next bank.
    """
    section = study.rounds
    steps: list[Step] = []
    bank, account = first, written
    for number in range(section.count):
        release = _release(number, bank, population, collector, journal)
        advance(1)
        survivors = select(release.histogram, bank.labels, positions, share=section.keep, threshold=section.threshold)
        draw = stream(study.seed, Purpose.SELECTION, number, "synthetic output")
        steps.append(Step(bank, account, release, synthetic_output(survivors, section.output, draw)))
        if number + 1 == section.count:
            return steps
        kept = journal.bank(number + 1)
        if kept is None:
            bred = next_bank(bank, survivors, generator, study.seed, number, examples=section.examples, exclude=exclude)
            kept = bred.bank, bred.tally
            journal.keep_bank(number + 1, *kept)
        bank = kept[0]
        account = TextPool(bank.texts, tuple(range(len(bank))), generator.id, kept[1])
    return steps


def _release(
    number: int, bank: Bank, population: SimulatedPopulation, collector: Collector, journal: Journal
) -> Release:
    """The round's release: a second one for the same participation would be a second disclosure."""
    kept = journal.release(number)
    if kept is None:
        population.set_time(number)
        (kept,) = run_rounds([number], bank, population, collector)
        journal.keep_release(kept)
        collector.take()
    elif kept.commitment != commit(bank):
        raise CommitmentMismatch(
            "the release on disk belongs to another bank",
            where=f"round {number + 1}",
            remedy="start the study anew in another folder",
        )
    return kept
