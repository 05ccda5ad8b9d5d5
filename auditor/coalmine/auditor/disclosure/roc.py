"""Scores as a membership attack: the ROC curve, its area, and the Mann-Whitney-Wilcoxon p-value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu, rankdata

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

POINTS = 201
RESAMPLES = 9_999
_NORMAL_FROM = 50
_FEW_TIES = 0.01


@dataclass(frozen=True)
class Roc:
    """An attack that guesses users with large scores.

    Attributes:
        auc: probability that a training user scores higher than a held-out one, ties counting half.
        p_value: one-sided, that train does not score higher. method: "normal" (Mann-Whitney with continuity correction)
            or "permutation".
        fpr, tpr: share of holdout and of train users above each threshold, from (0, 0) to (1, 1).
    """

    train: int
    holdout: int
    auc: float
    p_value: float
    method: str
    fpr: tuple[float, ...]
    tpr: tuple[float, ...]


def roc(scores: Array, train: Mask, generator: np.random.Generator) -> Roc | None:
    """The curve of scores that are numbers; ``None`` where one of the splits has none, or all scores are equal.

    The normal approximation of the rank sum needs many users and few ties. Elsewhere (counts of matches are mostly 0)
    the rank sum is compared with that of random splits of the same sizes, which is exact.

    Args:
        scores, train: (n,). NaN: no score.
    """
    known = ~np.isnan(scores)
    values, inside = scores[known], train[known]
    n1, n0 = int(inside.sum()), int((~inside).sum())
    if n1 == 0 or n0 == 0 or values.min() == values.max():
        return None
    ranks = rankdata(values)
    levels, where, ties = np.unique(ranks, return_inverse=True, return_counts=True)
    u = float(ranks[inside].sum()) - n1 * (n1 + 1) / 2
    if min(n1, n0) >= _NORMAL_FROM and ties.max() <= _FEW_TIES * len(values):
        method = "normal"
        p = float(mannwhitneyu(values[inside], values[~inside], alternative="greater", method="asymptotic").pvalue)
    else:
        method, taken = (
            "permutation",
            generator.multivariate_hypergeometric(ties, n1, size=RESAMPLES, method="marginals"),
        )
        sums = taken @ levels
        seen = float(ranks[inside].sum())
        p = (1 + int((sums >= seen - 1e-9 * seen).sum())) / (RESAMPLES + 1)
    hits, falls = np.bincount(where, inside, len(levels)), np.bincount(where, ~inside, len(levels))
    tpr = np.concatenate(([0.0], hits[::-1].cumsum() / n1))
    fpr = np.concatenate(([0.0], falls[::-1].cumsum() / n0))
    kept = np.unique(np.linspace(0, len(tpr) - 1, min(POINTS, len(tpr))).round().astype(int))
    return Roc(n1, n0, u / (n1 * n0), p, method, tuple(map(float, fpr[kept])), tuple(map(float, tpr[kept])))
