"""Noise on the grid, and how it is shared when no single party adds all of it.

**Distributed noise.** Every participant whose vote counts adds a share of variance ``(sigma C)^2 / m``, where m is a
public number of participants that is sure to survive dropouts: m shares are the promised noise. A sum of discrete
Gaussians is not a discrete Gaussian, but on a grid as fine as this one (2^-48 against a share's deviation) it differs
by less than float64 can tell (Kairouz, Liu and Steinke 2021, "The distributed discrete Gaussian mechanism").

**A trusted aggregator** sees how many shares came, s, and tops up to a public level ``(M / m) (sigma C)^2``, M being a
public number that s exceeds with probability below 1e-12. It may not stop at the promise: noise that grows with s would
tell s to everyone who looks at the spread of the release, and s is as private as the votes. So every release carries at
least the promised noise, and the same noise whoever took part. The factor M / m is the price.

**Without one** nobody tops up: fewer than m survivors abort the round, and everybody sees that, and about how many
took part. That is a disclosure no epsilon for "somebody takes part" covers (``ThreatModel.COHORT``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.errors import StudyError
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.randomness import Purpose, Randomness, Simulated, stream

_MORE = 1e-12
"""Probability that more participants come than ``most_participants`` says."""


def grid_noise(
    randomness: Randomness, purpose: Purpose, std: float, bits: int, size: int, round: int, user: str = ""
) -> NDArray[np.int64]:
    """Noise on the grid, (size,) units of 2**-bits.

    Simulated: a Gaussian of the study's stream (purpose, round, user), rounded to the grid. Protected: OpenDP's
    discrete Gaussian (Canonne, Kamath and Steinke 2020) from the operating system's entropy.

    Args:
        std: > 0, of one coordinate.
    """
    if isinstance(randomness, Simulated):
        gaussian = stream(randomness.seed, purpose, round, user).normal(0.0, std * 2.0**bits, size)
        return np.rint(gaussian).astype(np.int64)
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=dp.i64), size=size), dp.l2_distance(T=dp.f64)
    discrete = space >> dp.m.then_gaussian(std * 2.0**bits)
    return np.asarray(discrete([0] * size), np.int64)


@dataclass(frozen=True)
class SharedNoise:
    """Who adds how much, from public numbers alone.

    Attributes:
        minimum: m >= 1, participants that are sure to survive; a share is sized for them.
        maximum: M >= m, more do not come; ``None``: no trusted aggregator tops up.

    Raises:
        StudyError: a value out of range.
    """

    minimum: int
    maximum: int | None

    def __post_init__(self) -> None:
        if self.minimum < 1:
            raise StudyError(f"{self.minimum} survivors", where="noise.survivors", remedy="needs at least one")
        if self.maximum is not None and self.maximum < self.minimum:
            raise StudyError(
                f"{self.minimum} survivors, but no more than {self.maximum} users ever take part",
                where="noise.survivors",
                remedy=f"at most {self.maximum}",
            )

    @property
    def trusted(self) -> bool:
        """Whether a trusted aggregator tops up."""
        return self.maximum is not None

    def share_std(self, mechanism: Mechanism) -> float:
        """Standard deviation of one participant's share, ``sigma C / sqrt(m)``."""
        return mechanism.noise_std / math.sqrt(self.minimum)

    def top_up_std(self, mechanism: Mechanism, survivors: int) -> float:
        """Standard deviation of what a trusted aggregator adds, ``sigma C sqrt((M - s) / m)``; 0 without one."""
        missing = 0 if self.maximum is None else max(0, self.maximum - survivors)
        return mechanism.noise_std * math.sqrt(missing / self.minimum)

    def carried(self, mechanism: Mechanism) -> Mechanism:
        """The mechanism with the noise that a release carries: the public level with a trusted aggregator; without one
        the least that a release can carry, which is the promise."""
        level = 1.0 if self.maximum is None else self.maximum / self.minimum
        return replace(mechanism, sigma=mechanism.sigma * math.sqrt(level))


def most_participants(eligible: int, q: float) -> int:
    """More of ``eligible`` users take part with probability below 1e-12, whatever their availability: a public number.

    Args:
        eligible: >= 1. q: in (0, 1].
    """
    from scipy.stats import binom

    return int(binom.isf(_MORE, eligible, q))
