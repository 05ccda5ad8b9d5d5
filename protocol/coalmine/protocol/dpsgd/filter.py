"""Dropping the k samples with the highest signatures, per class or over all, for the rest of a run.

Why it costs nothing: take D' = D + {x}, both filtered by the same rule. If x is not among the top k of its class, the
same k go from both; if it is, D' loses x where D loses one more neighbour z, so the results differ in z alone. For
this every sample's place must follow from a total order (score, then id) that does not depend on who else is there,
and nothing may depend on a count: no class is spared for being small, no budget is kept. ``min(k, what is left)`` go.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coalmine.protocol.errors import ContributionError


class Reach(StrEnum):
    """Among whom the top k are taken."""

    PER_CLASS = "per class"
    GLOBAL = "global"


def drop(ids: ArrayLike, classes: ArrayLike, scores: ArrayLike, k: int, reach: Reach) -> NDArray[np.int64]:
    """The ids that one filtering drops, ascending.

    Args:
        ids: (n,) distinct integers of the samples still active, in any order.
        classes: (n,) their labels. scores: (n,) their signatures.
        k: how many go, of each class or of all.

    Raises:
        ContributionError: a signature is not a number, or an id comes twice.
    """
    id_of, class_of, score_of = np.asarray(ids, np.int64), np.asarray(classes), np.asarray(scores, np.float64)
    if np.isnan(score_of).any():
        raise ContributionError(
            "a signature is not a number", where="filter", remedy="the model has diverged; lower the learning rate"
        )
    if len(np.unique(id_of)) != len(id_of):
        raise ContributionError("a sample id comes twice", where="filter", remedy="every sample needs its own id")
    if reach is Reach.GLOBAL:
        class_of = np.zeros(len(id_of), np.int64)
    order = np.lexsort((id_of, -score_of))  # highest score first, then lowest id
    gone = [id_of[order[class_of[order] == label][:k]] for label in np.unique(class_of)]
    return np.sort(np.concatenate(gone)) if gone else np.zeros(0, np.int64)
