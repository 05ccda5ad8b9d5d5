"""Utility of a study's rounds: the same comparison for synthetic, round-zero and real texts, under the same seeds.

Held-out real users are the yardstick of everything. Against them stand, in turn, other real users (the ceiling), the
bank of round zero (the floor) and a round's synthetic output. All comparisons have as many texts on either side, and
seed by seed the same held-out texts, so that differences are not of sizes or samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coalmine.auditor.utility.downstream import Labelled, accuracy, majority_accuracy
from coalmine.auditor.utility.mauve_score import TEXTS_PER_BUCKET, mauve_score
from coalmine.auditor.utility.result import References, Repeated, RoundUtility
from coalmine.protocol.errors import DataError
from coalmine.protocol.randomness import Purpose, stream

REPEATS = 5
_SMALLEST = 2 * TEXTS_PER_BUCKET


@dataclass(frozen=True)
class Yardstick:
    """What a study's rounds are measured with.

    Attributes:
        held_out: real texts of users that train nothing. references: ceilings and floors.
        repeats: number of seeds. seed: their root.
    """

    held_out: Labelled
    references: References
    repeats: int
    seed: int

    def measure(self, rounds: int, synthetic: Labelled) -> RoundUtility:
        """Utility of the synthetic output of a round.

        Args:
            rounds: its number, from 1. synthetic: at least ``references.size`` texts.

        Raises:
            DataError: fewer texts.
        """
        against = self.references
        found = None
        if against.majority is not None:
            found = _accuracies(synthetic, self.held_out, against.size, self.repeats, self.seed)
        mauves = _mauves(synthetic, self.held_out, against.size, against.buckets, self.repeats, self.seed)
        return RoundUtility(rounds, mauves, found, against)


def yardstick(
    real: Labelled, held_out: Labelled, round_zero: Labelled, outputs: int, seed: int, repeats: int = REPEATS
) -> Yardstick:
    """Fix sizes and buckets, and measure what does not depend on a round.

    Args:
        real, held_out: texts of disjoint sets of real users. round_zero: the bank before the first round.
        outputs: synthetic texts of a round. repeats: >= 1, number of seeds.

    Raises:
        DataError: too few texts, or no seed.
    """
    size = min(len(real), len(held_out), len(round_zero), outputs)
    if size < _SMALLEST or repeats < 1:
        raise DataError(
            f"{size} texts on the smaller side, {repeats} seeds",
            where="utility",
            remedy=f"at least {_SMALLEST} texts of auxiliary users, of calibration users, in the bank and in"
            " rounds.output; at least one seed",
        )
    buckets = size // TEXTS_PER_BUCKET
    labelled = len(set(real.labels)) > 1 and len(set(held_out.labels)) > 1
    references = References(
        size=size,
        buckets=buckets,
        mauve_ceiling=_mauves(real, held_out, size, buckets, repeats, seed),
        mauve_floor=_mauves(round_zero, held_out, size, buckets, repeats, seed),
        accuracy_real=_accuracies(real, held_out, size, repeats, seed) if labelled else None,
        accuracy_floor=_accuracies(round_zero, held_out, size, repeats, seed) if labelled else None,
        majority=majority_accuracy(real, held_out) if labelled else None,
    )
    return Yardstick(held_out, references, repeats, seed)


def _mauves(texts: Labelled, held_out: Labelled, size: int, buckets: int, repeats: int, seed: int) -> Repeated:
    """Each seed draws the texts on either side, without replacement, and the quantiser's start."""
    values = []
    for repeat in range(repeats):
        one = _draw(len(texts), size, seed, repeat, "texts")
        other = _draw(len(held_out), size, seed, repeat, "held out")
        quantiser = int(stream(seed, Purpose.UTILITY, repeat, "quantiser").integers(2**31 - 1))
        values.append(mauve_score(texts.features[one], held_out.features[other], buckets, quantiser))
    return Repeated(tuple(values))


def _accuracies(texts: Labelled, held_out: Labelled, size: int, repeats: int, seed: int) -> Repeated:
    """Each seed draws a training set with replacement; the test set is all of the held-out texts."""
    values = []
    for repeat in range(repeats):
        if len(texts) < size:
            raise _too_few(len(texts), size)
        rows = stream(seed, Purpose.UTILITY, repeat, "training").integers(len(texts), size=size)
        values.append(accuracy(texts.take(rows), held_out))
    return Repeated(tuple(values))


def _draw(available: int, size: int, seed: int, repeat: int, what: str) -> np.ndarray:
    if available < size:
        raise _too_few(available, size)
    return stream(seed, Purpose.UTILITY, repeat, what).choice(available, size, replace=False)


def _too_few(available: int, size: int) -> DataError:
    return DataError(f"{available} texts, {size} are compared", where="utility", remedy="draw as many in every round")
