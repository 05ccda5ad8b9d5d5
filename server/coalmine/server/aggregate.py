"""The trusted aggregator: sums what shards hand in, adds the noise, lets only the noisy release out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.bank import Commitment
from coalmine.protocol.errors import ContributionError
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.randomness import Purpose, Randomness, Simulated, stream
from coalmine.protocol.release import Release


class Aggregator:
    """Sums one contribution per shard and round.

    Args:
        shards: contributions that a round needs. bits: fractional bits of the grid.
    """

    def __init__(self, mechanism: Mechanism, shards: int, bits: int, randomness: Randomness) -> None:
        self._mechanism = mechanism
        self._shards = shards
        self._bits = bits
        self._randomness = randomness
        self._sums: dict[int, NDArray[np.int64]] = {}
        self._heard: dict[int, set[int]] = {}
        self._closed: set[int] = set()

    def add(self, rounds: Sequence[int], shard: int, sums: NDArray[np.int64]) -> None:
        """Take a shard's sums, (len(rounds), p) grid units. A part that was already counted is ignored, so a shard that
        was restarted may repeat itself.

        Raises:
            ContributionError: unknown shard, or sums of another shape or type.
        """
        if not 0 <= shard < self._shards:
            raise ContributionError("a shard that does not belong to this round", where=f"shard {shard}")
        if sums.dtype != np.int64 or sums.ndim != 2 or len(sums) != len(rounds):
            raise ContributionError("sums must be int64 grid units, one row a round", where=f"shard {shard}")
        for round, units in zip(rounds, sums, strict=True):
            heard = self._heard.setdefault(round, set())
            if round in self._closed or shard in heard:
                continue
            if round in self._sums and len(self._sums[round]) != len(units):
                raise ContributionError("sums over banks of different sizes", where=f"shard {shard}, round {round}")
            self._sums[round] = self._sums[round] + units if round in self._sums else units.copy()
            heard.add(shard)

    def releases(self, rounds: Sequence[int], commitment: Commitment) -> list[Release]:
        """``release`` for several rounds over one bank."""
        return [self.release(round, commitment) for round in rounds]

    def release(self, round: int, commitment: Commitment) -> Release:
        """Add the noise and close the round. A round is released once: the same sum with fresh noise would be a second
        disclosure.

        Raises:
            ContributionError: the round was released before, or a shard is missing.
        """
        if round in self._closed:
            raise ContributionError("this round was already released", where=f"round {round}")
        if len(self._heard.get(round, ())) != self._shards:
            raise ContributionError("a shard has not handed in its part", where=f"round {round}")
        units = self._sums.pop(round)
        del self._heard[round]
        self._closed.add(round)
        noisy = units + draw_noise(self._randomness, self._mechanism.noise_std, self._bits, len(units), round)
        return Release(round, noisy / 2.0**self._bits, commitment, self._mechanism, self._randomness.kind)


def draw_noise(randomness: Randomness, std: float, bits: int, size: int, round: int) -> NDArray[np.int64]:
    """Noise on the grid, (size,) units of 2**-bits.

    Simulated: a Gaussian of the study's stream, rounded to the grid. Protected: OpenDP's discrete Gaussian (Canonne,
    Kamath and Steinke 2020) from the operating system's entropy.
    """
    if isinstance(randomness, Simulated):
        gaussian = stream(randomness.seed, Purpose.NOISE, round).normal(0.0, std * 2.0**bits, size)
        return np.rint(gaussian).astype(np.int64)
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=dp.i64), size=size), dp.l2_distance(T=dp.f64)
    discrete = space >> dp.m.then_gaussian(std * 2.0**bits)
    return np.asarray(discrete([0] * size), np.int64)
