"""Aggregators that are broken on purpose. Each overrides as little as it can; the rest is the real aggregator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.bank import Commitment
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.randomness import Purpose, Simulated, stream
from coalmine.protocol.release import Release
from coalmine.server.aggregate import Aggregator

_SHARES, _SURVIVORS = 20, 0.5
PUBLIC_SEED = 0


class _NoiseMissing(Aggregator):
    """Forgets the noise of every tenth coordinate."""

    def release(self, round: int, commitment: Commitment) -> Release:
        bare = self._sums[round][::10] / 2.0**self._bits
        noisy = super().release(round, commitment)
        histogram = noisy.histogram.copy()
        histogram[::10] = bare
        return replace(noisy, histogram=histogram)


class _CountsRepeats(Aggregator):
    """Does not recognise a part that it has already."""

    def add(
        self, rounds: Sequence[int], shard: int, sums: NDArray[np.int64], shares: Sequence[int] | None = None
    ) -> None:
        for number in rounds:
            self._heard.get(number, set()).discard(shard)
        super().add(rounds, shard, sums, shares)


class _NoiseReused(Aggregator):
    """Uses the noise of an even round once more."""

    _last: NDArray[np.float64]

    def release(self, round: int, commitment: Commitment) -> Release:
        bare = self._sums[round] / 2.0**self._bits
        noisy = super().release(round, commitment)
        if round % 2 == 0:
            self._last = noisy.histogram - bare
            return noisy
        return replace(noisy, histogram=bare + self._last)


class _SharesLost(Aggregator):
    """Adds up the noise shares of those who are left: each share was sized for all of them."""

    def release(self, round: int, commitment: Commitment) -> Release:
        bare = self._sums[round] / 2.0**self._bits
        whole = super().release(round, commitment)
        assert isinstance(self._randomness, Simulated)
        rng = stream(self._randomness.seed, Purpose.NOISE, round, "shares")
        left = int(_SHARES * _SURVIVORS)
        shares = rng.normal(0.0, self._mechanism.noise_std / _SHARES**0.5, (left, len(bare)))
        return replace(whole, histogram=bare + shares.sum(axis=0))


class _ReleaseRounded(Aggregator):
    """Rounds what it releases to two decimals."""

    def release(self, round: int, commitment: Commitment) -> Release:
        exact = super().release(round, commitment)
        return replace(exact, histogram=np.round(exact.histogram, 2))


def aggregator_of(bug: str, mechanism: Mechanism, bits: int, randomness: Simulated) -> Aggregator | None:
    """An aggregator of one shard with this bug; ``None`` where the bug is not an aggregator's."""
    match bug:
        case "noise too small":
            return Aggregator(replace(mechanism, sigma=mechanism.sigma * 2 / 3), 1, bits, randomness)
        case "noise too large":
            return Aggregator(replace(mechanism, sigma=mechanism.sigma * 3 / 2), 1, bits, randomness)
        case "noise without the clip":
            return Aggregator(replace(mechanism, sigma=mechanism.sigma / mechanism.clip), 1, bits, randomness)
        case "noise from a public seed":
            return Aggregator(mechanism, 1, bits, Simulated(PUBLIC_SEED))
        case "noise missing somewhere":
            return _NoiseMissing(mechanism, 1, bits, randomness)
        case "counted twice after a retry":
            return _CountsRepeats(mechanism, 1, bits, randomness)
        case "noise re-used":
            return _NoiseReused(mechanism, 1, bits, randomness)
        case "noise shares lost":
            return _SharesLost(mechanism, 1, bits, randomness)
        case "release rounded":
            return _ReleaseRounded(mechanism, 1, bits, randomness)
        case _:
            return None
