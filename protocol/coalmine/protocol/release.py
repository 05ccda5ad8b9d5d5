"""What leaves a round: a noisy histogram, and nothing else about the cohort."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.bank import Commitment
from coalmine.protocol.privacy import Mechanism


@dataclass(frozen=True)
class Release:
    """The noisy user-level histogram of one round.

    Attributes:
        round: index of the round.
        histogram: (p,) float64, sum of clipped votes plus noise of standard deviation sigma * C per coordinate.
        commitment: the bank it was voted on.
        mechanism: the knobs that were in force.
        randomness: "simulated" (whoever knows the study seed can recompute the noise) or "protected".
    """

    round: int
    histogram: NDArray[np.float64]
    commitment: Commitment
    mechanism: Mechanism
    randomness: str
