"""The next round's bank: the survivors where they stand, and new texts in their manner.

Every place keeps its label for good, so the labels' shares of the bank are public and the same in every round. Probes
keep their places and texts; whoever audits may plant others there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.bank import Bank
from coalmine.protocol.errors import BankError, GeneratorError
from coalmine.protocol.pool import Tally
from coalmine.protocol.ports import Advance, Generator
from coalmine.protocol.randomness import Purpose, stream
from coalmine.server.generate.collect import ATTEMPTS, collect_variations
from coalmine.server.select import Survivors

EXAMPLES = 3
"""Default number of survivors that a new text is written after."""


@dataclass(frozen=True)
class Bred:
    """A next bank with the account of how its new texts came about.

    Attributes:
        bank: as long as the one before, with its labels.
        tally: what the generator delivered, over all labels.
    """

    bank: Bank
    tally: Tally


def next_bank(
    bank: Bank,
    survivors: Survivors,
    generator: Generator,
    seed: int,
    round: int,
    *,
    examples: int = EXAMPLES,
    exclude: Collection[str] = (),
    attempts: int = ATTEMPTS,
    progress: Advance | None = None,
) -> Bred:
    """Fill the places of all candidates that did not survive with variations of survivors of the same label.

    A new text is written after one survivor, each in its turn, and ``examples - 1`` others drawn evenly from its label.

    Args:
        round: the round whose survivors these are. examples: >= 1. attempts: rounds of asking before giving up.
        exclude: texts that must not come out (a canary's records, probes that will be planted), compared by words.

    Raises:
        BankError: survivors that do not fit the bank.
        GeneratorError: too few distinct texts; says how many of which label are missing.
    """
    missing = _missing(bank, survivors)
    texts = list(bank.texts)
    kept = [text for place, text in enumerate(bank.texts) if not missing[place]]
    taken = {*exclude, *kept}
    lacking: dict[str, int] = {}
    tallies: list[Tally] = []
    for label in sorted(set(bank.labels)):
        places = [place for place in np.flatnonzero(missing) if bank.labels[place] == label]
        if not places:
            continue
        parents = [bank.texts[place] for place in survivors.candidates if bank.labels[place] == label]
        source = stream(seed, Purpose.GENERATOR, round, f"next bank, label {label}")
        groups = _groups(parents, len(places), examples, source)
        count = _Count(progress)
        try:
            pool = collect_variations(
                generator,
                groups,
                len(places),
                int(source.integers(2**62)),
                exclude=taken,
                attempts=attempts,
                progress=count,
            )
        except GeneratorError:
            lacking[label] = len(places) - count.done
            continue
        for place, text in zip(places, pool.texts, strict=True):
            texts[place] = text
        taken.update(pool.texts)
        tallies.append(pool.tally)
    if lacking:
        raise _shortage(lacking, int(missing.sum()))
    return Bred(Bank(tuple(texts), bank.labels, bank.encoder_id), _together(tallies))


class _Count:
    """Counts the texts that were kept, and passes them on."""

    def __init__(self, then: Advance | None) -> None:
        self.done = 0
        self._then = then

    def __call__(self, more: int) -> None:
        self.done += more
        if self._then is not None:
            self._then(more)


def _missing(bank: Bank, survivors: Survivors) -> NDArray[np.bool_]:
    """(p,) the places to fill."""
    stay = np.concatenate([survivors.candidates, survivors.probes])
    if len(stay) and (stay.min() < 0 or stay.max() >= len(bank)):
        raise BankError(f"survivors lie outside a bank of {len(bank)}", where="next bank", remedy="select on this bank")
    missing = np.ones(len(bank), bool)
    missing[stay] = False
    barren = {bank.labels[place] for place in np.flatnonzero(missing)}
    barren -= {bank.labels[place] for place in survivors.candidates}
    if barren:
        raise BankError(
            f"no candidate of label {min(barren)!r} survived", where="next bank", remedy="select on this bank's labels"
        )
    return missing


def _groups(parents: Sequence[str], size: int, examples: int, rng: np.random.Generator) -> list[tuple[str, ...]]:
    """``size`` groups of examples, led by each parent in turn."""
    others = min(examples, len(parents)) - 1
    groups = []
    for turn in range(size):
        leader = turn % len(parents)
        drawn: list[int] = rng.choice(len(parents) - 1, others, replace=False).tolist() if others > 0 else []
        groups.append((parents[leader], *(parents[other + (other >= leader)] for other in drawn)))
    return groups


def _together(tallies: Sequence[Tally]) -> Tally:
    return Tally(
        asked=sum(tally.asked for tally in tallies),
        blank=sum(tally.blank for tally in tallies),
        repeated=sum(tally.repeated for tally in tallies),
        refused=sum(tally.refused for tally in tallies),
        unfaithful=sum(tally.unfaithful for tally in tallies),
        moved=sum(tally.moved for tally in tallies),
    )


def _shortage(lacking: dict[str, int], wanted: int) -> GeneratorError:
    listed = ", ".join(f"{count} of label {label!r}" for label, count in lacking.items())
    return GeneratorError(
        f"{sum(lacking.values())} of {wanted} new texts are missing: {listed}",
        where="next bank",
        remedy="use a smaller bank, allow more attempts, or use another generator",
    )
