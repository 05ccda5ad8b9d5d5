"""Whom the filter drops and whose accuracy it costs, by subgroup and class (arXiv 2608.28934, appendix B)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from coalmine.protocol.errors import StudyError
from coalmine.protocol.privacy import Assurance


@dataclass(frozen=True)
class Share:
    """A share of some samples, averaged over models.

    Attributes:
        of: which samples. mean: over models, in [0, 1]; low, high: Student interval for it over models (heuristic:
            models share their data). samples: how many there are.
    """

    of: str
    mean: float
    low: float
    high: float
    samples: int


@dataclass(frozen=True)
class Impact:
    """Dropped shares and accuracies by subgroup, and the ratio that says who pays.

    Attributes:
        dropped: share of each subgroup's training samples that was dropped. by_class: of each class's.
        accuracy, accuracy_unfiltered: on test samples of each subgroup with and without the filter.
    """

    dropped: tuple[Share, ...]
    by_class: tuple[Share, ...]
    accuracy: tuple[Share, ...]
    accuracy_unfiltered: tuple[Share, ...]


@dataclass(frozen=True)
class Disparity:
    """The impact on one kind of data.

    Attributes:
        minority: declared share of group 1, ``None``: the study's own data. models: with and without the filter each.
        method, assurance: every interval is over models that share their data.
    """

    minority: float | None
    impact: Impact
    models: int
    method: str = "disparate/mean over models"
    assurance: Assurance = Assurance.HEURISTIC


def shares(flags: ArrayLike, groups: ArrayLike, name: str, confidence: float = 0.95) -> tuple[Share, ...]:
    """Mean of (models, n) flags for every value of (n,) groups, ascending; negative groups (canaries) are left out.

    Raises:
        StudyError: shapes that do not fit.
    """
    marked, group = np.asarray(flags, np.float64), np.asarray(groups, np.int64)
    if marked.ndim != 2 or marked.shape[1:] != group.shape:
        raise StudyError("flags and groups do not fit", where=name, remedy="needs (models, n) flags and (n,) groups")
    found = []
    for value in np.unique(group[group >= 0]):
        inside = group == value
        by_model: NDArray[np.float64] = marked[:, inside].mean(axis=1)
        mean, models = float(by_model.mean()), len(by_model)
        half = (
            float(student.isf((1 - confidence) / 2, models - 1)) * float(by_model.std(ddof=1)) / models**0.5
            if models > 1
            else float("inf")
        )
        found.append(Share(f"{name} {value}", mean, max(0.0, mean - half), min(1.0, mean + half), int(inside.sum())))
    return tuple(found)


def impact(
    dropped: ArrayLike,
    labels: ArrayLike,
    groups: ArrayLike,
    right: ArrayLike,
    right_unfiltered: ArrayLike,
    test_groups: ArrayLike,
) -> Impact:
    """Disparate impact of a filter.

    Args:
        dropped: (models, n) whether each training sample was dropped; labels, groups: (n,).
        right, right_unfiltered: (models, t) whether each test sample was predicted right with and without the filter;
            test_groups: (t,).
    """
    return Impact(
        shares(dropped, groups, "group"),
        shares(dropped, labels, "class"),
        shares(right, test_groups, "group"),
        shares(right_unfiltered, test_groups, "group"),
    )
