"""The Canary's Echo: membership of inserted canaries from synthetic text alone (Meeus et al. 2025, arXiv 2502.14921).

A baseline, kept so that both audits can be read side by side: unlike the others it needs canaries and more runs of the
generator. A canary scores high where an n-gram model of the audited text gives it more than n-gram models of text
from reference runs do, each of which saw another part of the canaries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from coalmine.auditor import clopper_pearson
from coalmine.auditor.disclosure.echo_counts import canary_grams, log_probability
from coalmine.auditor.disclosure.roc import Roc, roc
from coalmine.protocol.errors import DataError, StudyError
from coalmine.protocol.privacy import Assurance

Texts = Callable[[], Iterable[str]]
"""Opens a synthetic data set; read more than once, never held as a whole."""

REFERENCES = 4
LOW_RATES = (0.001, 0.01, 0.1)
_FEWEST = 10


class Normalisation(StrEnum):
    """How a score is freed of how common a canary is anyway.

    PROBABILITY: P(canary) over the mean of the references' P(canary), in logarithms (the usual likelihood ratio).
    LOG_PROBABILITY: the mean of the references' log P over log P. Both are negative, so that higher again means member.
    """

    PROBABILITY = "probability"
    LOG_PROBABILITY = "log-probability"


@dataclass(frozen=True)
class LowRate:
    """Members found where few non-members are taken for members.

    Attributes:
        fpr: allowed rate of false alarms. tpr: share of members above the highest threshold that keeps to it.
        lower, upper: 95 % Clopper-Pearson for members beyond that threshold. The threshold was chosen on the same
            non-members, so this is an indication only.
    """

    fpr: float
    tpr: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Echo:
    """What the audit found.

    Attributes:
        scores: (canaries,) high for members; they tell who is a member, so they are private.
        roc: area, and p-value of the hypothesis that the synthetic text says nothing about which canaries were put in.
            ``None`` where all scores are equal.
        low: the curve at low rates of false alarms.
        assurance: of the p-value. FORMAL if canaries were put in at random; HEURISTIC if their split is unknown.
    """

    members: int
    non_members: int
    n: int
    references: int
    normalisation: Normalisation
    scores: NDArray[np.float64]
    roc: Roc | None
    low: tuple[LowRate, ...]
    assurance: Assurance


def echo(
    canaries: Sequence[str],
    member: NDArray[np.bool_],
    synthetic: Texts,
    references: Sequence[Texts],
    generator: np.random.Generator,
    *,
    n: int = 2,
    smoothing: float = 1.0,
    normalisation: Normalisation = Normalisation.PROBABILITY,
    randomised: bool = True,
) -> Echo:
    """Score the canaries and compare members with non-members.

    Args:
        canaries: all texts, those put in and those held out.
        member: (canaries,) which were put in.
        synthetic: the audited output.
        references: outputs of the same generator for the same records with disjoint parts of all the canaries, divided
            without regard to ``member``.
        generator: for the permutation test, where few canaries or ties ask for it.
        n, smoothing: of the n-gram model.
        randomised: whether it was drawn at random which canaries were put in.

    Raises:
        DataError: fewer than ten canaries on a side, no reference, an empty text.
        StudyError: a number out of its range.
    """
    member = np.asarray(member, bool)
    if len(member) != len(canaries):
        raise DataError(f"{len(canaries)} canaries, {len(member)} answers", where="canaries", remedy="one each")
    inside = int(member.sum())
    if min(inside, len(member) - inside) < _FEWEST:
        raise DataError(
            f"{inside} canaries were put in and {len(member) - inside} held out",
            where="canaries",
            remedy=f"at least {_FEWEST} of each; the method was published with 500",
        )
    if not references:
        raise DataError("no reference", where="references", remedy=f"the method takes {REFERENCES}")
    grams = canary_grams(canaries, n)
    vocabulary = _distinct_words(canaries, synthetic, *references)
    own, *others = (log_probability(grams, texts(), vocabulary, smoothing) for texts in (synthetic, *references))
    scores = normalised(own, np.array(others), normalisation)
    return Echo(
        inside,
        len(member) - inside,
        n,
        len(references),
        normalisation,
        scores,
        roc(scores, member, generator),
        tuple(_low_rate(scores, member, rate) for rate in LOW_RATES),
        Assurance.FORMAL if randomised else Assurance.HEURISTIC,
    )


def normalised(
    own: NDArray[np.float64], references: NDArray[np.float64], normalisation: Normalisation
) -> NDArray[np.float64]:
    """(canaries,) scores from log-probabilities: (canaries,) of the audited text, (r, canaries) of the references."""
    if normalisation is Normalisation.LOG_PROBABILITY:
        if not (own < 0).all():
            raise StudyError("a canary has probability 1", where="smoothing", remedy="a larger one")
        ratio: NDArray[np.float64] = references.mean(0) / own
        return ratio
    mean: NDArray[np.float64] = logsumexp(references, axis=0) - np.log(len(references))
    return own - mean


def _low_rate(scores: NDArray[np.float64], member: NDArray[np.bool_], rate: float) -> LowRate:
    """Guesses are scores above a threshold that at most ``rate`` of the non-members exceed."""
    outside = np.sort(scores[~member])[::-1]
    allowed = int(np.floor(rate * len(outside) + 1e-9))
    hits = int((scores[member] > outside[allowed]).sum())
    members = int(member.sum())
    return LowRate(
        rate,
        hits / members,
        float(clopper_pearson.lower(hits, members, 0.025)),
        float(clopper_pearson.upper(hits, members, 0.025)),
    )


def _distinct_words(canaries: Sequence[str], *others: Texts) -> int:
    words: set[str] = set()
    for text in canaries:
        words.update(text.split())
    for texts in others:
        for text in texts():
            words.update(text.split())
    return len(words)
