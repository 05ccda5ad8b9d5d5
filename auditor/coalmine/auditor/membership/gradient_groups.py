"""Groups of canaries in gradient space, against which the filter does not help (arXiv 2608.28934, section 4.5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.errors import StudyError


@dataclass(frozen=True, eq=False)
class GradientGroup:
    """m canaries, each with one non-zero gradient coordinate at every step.

    Attributes:
        coordinate: (m,) of the flat parameter vector. size: (m,) signed length. label: (m,) class of ranking.
    """

    coordinate: NDArray[np.int64]
    size: NDArray[np.float64]
    label: NDArray[np.int64]


def one_hot(members: int, coordinate: int, size: float, classes: int) -> GradientGroup:
    """``members`` times the same Dirac gradient, spread evenly over the classes.

    The paper's group has 500 members of the smallest (k+1)-th largest gradient norm over all filterings: see
    :func:`just_below_the_filter`.

    Raises:
        StudyError: no members, or a size that is not > 0.
    """
    _require(members, size)
    return GradientGroup(
        np.full(members, coordinate, np.int64),
        np.full(members, float(size)),
        np.arange(members, dtype=np.int64) % classes,
    )


def cancelling(
    members: int, coordinate: int, size: float, classes: int, *, bait: float = 10.0
) -> tuple[GradientGroup, GradientGroup]:
    """Groups A and B whose clipped gradients cancel while both are there.

    A has ``bait`` times the length and the opposite sign: the filter drops A first, and what B adds is then exposed.

    Raises:
        StudyError: no members, a size that is not > 0, or a bait that is not longer than its counterpart.
    """
    _require(members, size)
    if not bait > 1:
        raise StudyError(f"{bait!r} is not allowed", where="gradient_cancelling.bait", remedy="needs a factor above 1")
    b = one_hot(members, coordinate, size, classes)
    return GradientGroup(b.coordinate, -bait * b.size, b.label), b


def just_below_the_filter(signatures: NDArray[np.float64], labels: NDArray[np.int64], k: int) -> float:
    """The largest gradient norm that per-class filtering leaves alone at every filtering.

    Args:
        signatures: (f, n) gradient norms of the active samples at each filtering, NaN where not active. labels: (n,).

    Returns:
        The minimum over filterings and classes of the (k+1)-th largest norm.

    Raises:
        StudyError: a class with k samples or fewer at some filtering: every canary of it would be dropped.
    """
    found = []
    for row in signatures:
        for label in np.unique(labels):
            norms = np.sort(row[(labels == label) & ~np.isnan(row)])
            if len(norms) <= k:
                raise StudyError(
                    f"class {label} has {len(norms)} samples", where="one_hot", remedy=f"needs more than {k}"
                )
            found.append(norms[-k - 1])
    return float(min(found))


def _require(members: int, size: float) -> None:
    if members < 1 or not size > 0:
        raise StudyError(f"{members} canaries of size {size}", where="gradient canaries", remedy="needs both > 0")
