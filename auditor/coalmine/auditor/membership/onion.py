"""Does filtering expose somebody else? Every non-canary sample is used to guess whether the canary was there.

(arXiv 2608.28934, appendix G, after the privacy onion effect of Carlini et al. 2022.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coalmine.auditor import eps_bound
from coalmine.auditor.eps_bound import Split
from coalmine.auditor.membership.ceiling import ceiling
from coalmine.auditor.membership.conventions import (
    LEAST_MODELS,
    best_threshold,
    multiple_hypothesis_corrected,
    require_models,
)
from coalmine.auditor.membership.thresholds import counts_at, halves, sweep
from coalmine.protocol.errors import StudyError
from coalmine.protocol.finding import Evidence
from coalmine.protocol.privacy import Assurance

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Onion:
    """What all other samples show about the canary.

    Attributes:
        by_sample: (n,) heuristic bound of each sample's best threshold, uncorrected.
        strongest: their maximum, heuristic. holdout: sample and threshold chosen on half of the models, the bound from
            the other half: formal.
    """

    by_sample: Array
    strongest: Evidence
    holdout: Evidence


def onion(present: ArrayLike, absent: ArrayLike, delta: float, alpha: float, rng: np.random.Generator) -> Onion:
    """Audit with every sample's score.

    Args:
        present, absent: (models, n) scores of n training samples in models with and without the canary. Both directions
            are tried: the canary may raise or lower another sample's score.

    Raises:
        StudyError: shapes that do not fit, or too few models.
    """
    sides = [np.asarray(side, np.float64) for side in (present, absent)]
    if sides[0].ndim != 2 or sides[0].shape[1:] != sides[1].shape[1:] or not sides[0].shape[1]:
        raise StudyError("scores do not fit", where="onion", remedy="needs (models, n) scores on both sides")
    require_models(*map(len, sides))
    with_canary, without = (np.concatenate([side, -side], axis=1) for side in sides)
    n = sides[0].shape[1]
    both = np.array(
        [
            multiple_hypothesis_corrected(one, zero, delta, alpha).eps_lower
            for one, zero in zip(with_canary.T, without.T, strict=True)
        ]
    )
    by_sample = np.maximum(both[:n], both[n:])
    models = {"models_with": float(len(with_canary)), "models_without": float(len(without)), "samples": float(n)}
    parts = [halves(len(side), rng) for side in (with_canary, without)]
    chosen = with_canary[parts[0][0]], without[parts[1][0]]
    reported = with_canary[parts[0][1]], without[parts[1][1]]
    require_models(*map(len, (*chosen, *reported)), least=LEAST_MODELS // 2)
    found = [
        multiple_hypothesis_corrected(one, zero, delta, alpha).eps_lower
        for one, zero in zip(chosen[0].T, chosen[1].T, strict=True)
    ]
    column = int(np.argmax(found))
    threshold = best_threshold(sweep(chosen[0][:, column], chosen[1][:, column]), delta, alpha)
    tp, fp = counts_at(reported[0][:, column], reported[1][:, column], threshold)
    n1, n0 = len(reported[0]), len(reported[1])
    bound = eps_bound.eps_lower(tp, fp, n1, n0, delta, alpha, Split.TWO)
    return Onion(
        by_sample,
        Evidence("onion/multiple_hypothesis", Assurance.HEURISTIC, float(by_sample.max()), None, None, models),
        Evidence(
            "onion/clopper_pearson_holdout",
            Assurance.FORMAL,
            bound.eps_lower,
            1 - alpha,
            None,
            {**models, "ceiling": ceiling(n1, n0, delta, bound.gamma)},
        ),
    )
