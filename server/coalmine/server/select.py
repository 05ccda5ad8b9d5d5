"""Who survives a round, and the round's synthetic output: functions of the noisy histogram and public facts alone.

Method: many rounds of Private Evolution (Lin et al. 2024) with an audit's probes in the bank. The best 5 % of each
label's candidates are kept, and the probes. Weights are ``max(Y - H, 0)``, the thresholded histogram of Private
Evolution, with a public threshold H.

Defined for every finite histogram. Ranks need no positive count: with all counts equal or negative the candidates that
come first win, because ties go to the lowest index. Where no survivor's count exceeds H every weight is zero, and the
output is drawn evenly from the survivors.

A probe has no part in ranks, weights or output: it belongs to an audit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.errors import StudyError

KEPT = 0.05
"""Share of each label's candidates that survive, as published."""


@dataclass(frozen=True)
class Survivors:
    """What is left of a bank after its round.

    Attributes:
        candidates: (s,) ascending bank indices, none a probe; at least one of each label that has a candidate.
        weights: (s,) >= 0, thresholded noisy counts of ``candidates``; all zero where none exceeds the threshold.
        probes: (r,) ascending bank indices, kept whatever their counts.
    """

    candidates: NDArray[np.int64]
    weights: NDArray[np.float64]
    probes: NDArray[np.int64]

    @property
    def shares(self) -> NDArray[np.float64]:
        """(s,) probabilities in proportion to the weights; even where all weights are zero."""
        top = self.weights.max(initial=0.0)
        if top == 0:
            return np.full(len(self.weights), 1 / max(1, len(self.weights)))
        relative = self.weights / top  # a sum of huge counts must not overflow
        return np.asarray(relative / relative.sum(), dtype=np.float64)


def select(
    histogram: NDArray[np.float64],
    labels: Sequence[str],
    probes: NDArray[np.int64],
    *,
    share: float = KEPT,
    threshold: float = 0.0,
) -> Survivors:
    """Keep each label's best candidates by noisy count, ties to the lowest index, and the probes.

    Args:
        histogram: (p,) a release's noisy counts. labels: p public labels of the bank.
        probes: (r,) distinct bank indices declared for probes; none compete.
        share: in (0, 1], of the candidates of each label; rounded up, so that no label dies out.
        threshold: H >= 0, in the units of the histogram.

    Raises:
        StudyError: a value out of range, shapes that differ, a count that is not finite, or nothing but probes.
    """
    if not 0 < share <= 1:
        raise StudyError(f"{share!r} is not allowed", where="selection share", remedy="needs a share in (0, 1]")
    if not (threshold >= 0 and math.isfinite(threshold)):
        raise StudyError(f"{threshold!r} is not allowed", where="selection threshold", remedy="needs a count >= 0")
    if histogram.shape != (len(labels),):
        raise StudyError(
            f"a histogram of shape {histogram.shape} over {len(labels)} candidates",
            where="selection",
            remedy="one each",
        )
    if not np.isfinite(histogram).all():
        raise StudyError("a noisy count is not a finite number", where="selection", remedy="check the release")
    competing = np.ones(len(labels), bool)
    competing[probes] = False
    if not competing.any():
        raise StudyError("every candidate is a probe", where="selection", remedy="needs a larger bank or fewer probes")
    _, label = np.unique(np.asarray(labels, dtype=object), return_inverse=True)
    best = np.lexsort((-histogram, label))  # stable: by label, then by count, then by index
    best = best[competing[best]]
    sizes = np.bincount(label[best])
    first = np.cumsum(sizes) - sizes
    rank = np.arange(len(best)) - first[label[best]]
    quota = np.array([math.ceil(Fraction(str(share)) * int(size)) for size in sizes], dtype=np.int64)
    candidates = np.sort(best[rank < quota[label[best]]])
    return Survivors(candidates, np.maximum(histogram[candidates] - threshold, 0.0), np.sort(probes))


def synthetic_output(survivors: Survivors, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The round's synthetic output: bank indices drawn with replacement in proportion to the survivors' weights.

    Args:
        size: >= 0, how many texts.

    Returns:
        (size,) bank indices.
    """
    return rng.choice(survivors.candidates, size, p=survivors.shares)
