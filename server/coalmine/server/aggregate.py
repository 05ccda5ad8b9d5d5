"""The aggregator: sums what shards hand in, adds the noise or what is missing of it, lets only the release out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.bank import Commitment
from coalmine.protocol.errors import ContributionError, RoundAborted
from coalmine.protocol.noise import SharedNoise, grid_noise
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.randomness import Purpose, Randomness
from coalmine.protocol.release import Release


class Aggregator:
    """Sums one contribution per shard and round.

    Args:
        shards: contributions that a round needs. bits: fractional bits of the grid.
        sharing: how participants share the noise; ``None``: the aggregator adds all of it.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        shards: int,
        bits: int,
        randomness: Randomness,
        sharing: SharedNoise | None = None,
    ) -> None:
        self._mechanism = mechanism
        self._shards = shards
        self._bits = bits
        self._randomness = randomness
        self._sharing = sharing
        self._survivors: dict[int, int] = {}
        self._sums: dict[int, NDArray[np.int64]] = {}
        self._heard: dict[int, set[int]] = {}
        self._closed: set[int] = set()

    def add(
        self, rounds: Sequence[int], shard: int, sums: NDArray[np.int64], shares: Sequence[int] | None = None
    ) -> None:
        """Take a shard's sums, (len(rounds), p) grid units. A part that was already counted is ignored, so a shard that
        was restarted may repeat itself.

        Args:
            shares: how many noise shares each sum holds, where participants share the noise; goes no further.

        Raises:
            ContributionError: unknown shard, sums of another shape or type, or shares that do not fit.
        """
        if not 0 <= shard < self._shards:
            raise ContributionError("a shard that does not belong to this round", where=f"shard {shard}")
        if sums.dtype != np.int64 or sums.ndim != 2 or len(sums) != len(rounds):
            raise ContributionError("sums must be int64 grid units, one row a round", where=f"shard {shard}")
        if (shares is None) != (self._sharing is None) or (shares is not None and len(shares) != len(rounds)):
            raise ContributionError("noise shares do not fit the round's noise mode", where=f"shard {shard}")
        for round, units, came in zip(rounds, sums, shares or [0] * len(rounds), strict=True):
            heard = self._heard.setdefault(round, set())
            if round in self._closed or shard in heard:
                continue
            if round in self._sums and len(self._sums[round]) != len(units):
                raise ContributionError("sums over banks of different sizes", where=f"shard {shard}, round {round}")
            self._sums[round] = self._sums[round] + units if round in self._sums else units.copy()
            self._survivors[round] = self._survivors.get(round, 0) + came
            heard.add(shard)

    def releases(self, rounds: Sequence[int], commitment: Commitment) -> list[Release]:
        """``release`` for several rounds over one bank."""
        return [self.release(round, commitment) for round in rounds]

    def release(self, round: int, commitment: Commitment) -> Release:
        """Add the noise and close the round. A round is released once: the same sum with fresh noise would be a second
        disclosure.

        Raises:
            ContributionError: the round was released before, or a shard is missing.
            RoundAborted: too few participants survived and nobody is trusted to top up; the round stays closed.
        """
        if round in self._closed:
            raise ContributionError("this round was already released", where=f"round {round}")
        if len(self._heard.get(round, ())) != self._shards:
            raise ContributionError("a shard has not handed in its part", where=f"round {round}")
        units = self._sums.pop(round)
        del self._heard[round]
        self._closed.add(round)
        noisy = units + self._missing_noise(round, len(units), self._survivors.pop(round))
        return Release(round, noisy / 2.0**self._bits, commitment, self._mechanism, self._randomness.kind)

    def _missing_noise(self, round: int, size: int, survivors: int) -> NDArray[np.int64]:
        """What the sum does not hold yet of the noise that a release must carry."""
        sharing, std = self._sharing, self._mechanism.noise_std
        if sharing is not None:
            if not sharing.trusted and survivors < sharing.minimum:
                raise RoundAborted(
                    f"fewer than {sharing.minimum} participants survived, so the round is aborted and never repeated;"
                    " that it was aborted is itself a disclosure",
                    where=f"round {round}",
                    remedy="a lower noise.survivors (more noise a share), or an aggregator that is trusted to top up",
                )
            std = sharing.top_up_std(self._mechanism, survivors)
        return draw_noise(self._randomness, std, self._bits, size, round) if std else np.zeros(size, np.int64)


def draw_noise(randomness: Randomness, std: float, bits: int, size: int, round: int) -> NDArray[np.int64]:
    """The aggregator's noise of a round, (size,) units of 2**-bits; see ``protocol.noise.grid_noise``."""
    return grid_noise(randomness, Purpose.NOISE, std, bits, size, round)
