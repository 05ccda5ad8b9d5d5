"""True-positive rate at a low false-positive rate: how attacks that see labels only are compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from coalmine.auditor import clopper_pearson
from coalmine.auditor.eps_bound import Split
from coalmine.auditor.membership.thresholds import sweep
from coalmine.protocol.errors import StudyError
from coalmine.protocol.privacy import Adjacency, Assurance, Claim, PrivacyUnit


@dataclass(frozen=True)
class LowRate:
    """The most members found while at most a share ``fpr`` of non-members are accused.

    Attributes:
        tpr: observed at the chosen threshold; low, high: Clopper-Pearson interval for it as if the threshold had been
            fixed: heuristic, since it was chosen on the same scores.
        observed_fpr: at most ``fpr``. resolution: 1 / non-members; smaller rates cannot be told from 0.
    """

    fpr: float
    tpr: float
    low: float
    high: float
    observed_fpr: float
    resolution: float
    confidence: float


@dataclass(frozen=True)
class LabelOnly:
    """An attacker who sees predicted labels alone, against one defence. Rates are compared, no epsilon follows.

    Attributes:
        defence: how the models were trained. claim: of its mechanism, ``None`` where there is none.
        accuracy: on public test samples. dropped: share of the present canaries that a filter took, ``None`` without.
        canaries: mislabeled samples, each in half of the models. views: of a canary, whose labels are asked.
    """

    defence: str
    claim: Claim | None
    accuracy: float
    dropped: float | None
    rates: tuple[LowRate, ...]
    canaries: int
    models: int
    views: int
    method: str = "label_only/share of views, calibrated on other models"
    assurance: Assurance = Assurance.HEURISTIC
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    unit: PrivacyUnit = PrivacyUnit.RECORD


def tpr_at(present: ArrayLike, absent: ArrayLike, fpr: float, alpha: float = 0.05) -> LowRate:
    """Of "score at least t" over all thresholds, "never accuse" included.

    Args:
        present, absent: scores of members and of non-members, any number of models and samples pooled.

    Raises:
        StudyError: a value out of its range.
    """
    if not 0 <= fpr < 1:
        raise StudyError(f"{fpr!r} is not allowed", where="fpr", remedy="needs a rate in [0, 1)")
    tests = sweep(present, absent)
    fits = np.flatnonzero(tests.fp <= fpr * tests.without)
    tp, fp = (int(tests.tp[fits[0]]), int(tests.fp[fits[0]])) if len(fits) else (0, 0)
    gamma = Split.TWO.gamma(alpha)
    return LowRate(
        fpr,
        tp / tests.with_canary,
        float(clopper_pearson.lower(tp, tests.with_canary, gamma)),
        float(clopper_pearson.upper(tp, tests.with_canary, gamma)),
        fp / tests.without,
        1 / tests.without,
        1 - alpha,
    )
