"""Canaries in gradient space: samples whose gradient is the same single coordinate at every step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.errors import StudyError


@dataclass(frozen=True, eq=False)
class GradientCanaries:
    """m samples without features. Their ids follow those of the table's samples.

    Attributes:
        coordinate: (m,) of the flat parameter vector. size: (m,) signed length before clipping.
        label: (m,) class in which the filter ranks them.

    Raises:
        StudyError: columns of different lengths, or a length that is no number.
    """

    coordinate: NDArray[np.int64]
    size: NDArray[np.float64]
    label: NDArray[np.int64]

    def __post_init__(self) -> None:
        if not len(self.coordinate) == len(self.size) == len(self.label) or not np.isfinite(self.size).all():
            raise StudyError("columns do not fit", where="gradient canaries", remedy="needs m finite values in each")

    def __len__(self) -> int:
        return len(self.size)

    def clipped(self, bound: float) -> NDArray[np.float64]:
        """(m,) signed lengths after clipping."""
        return np.clip(self.size, -bound, bound)


def no_gradient_canaries() -> GradientCanaries:
    return GradientCanaries(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))
