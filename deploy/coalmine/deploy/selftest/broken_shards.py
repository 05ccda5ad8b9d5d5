"""Shards that are broken on purpose. Each overrides as little as its bug needs; the rest is the real shard."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from coalmine.clients.shard import Hosted, Shard
from coalmine.deploy.selftest.world import World
from coalmine.protocol.ballot import Ballot
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.randomness import Purpose, participates, stream
from coalmine.protocol.route import route
from coalmine.protocol.tally import Votes, tally

_LOST = 0.25
_COARSE_BITS = 5
_REMEMBERED = 1024


class HonestShard(Shard):
    """The real shard, which remembers its latest draws for those that differ from it in their votes only."""

    def __init__(self, hosted: Hosted, mechanism: Mechanism, key: bytes, bits: int) -> None:
        super().__init__(0, hosted, mechanism, key, bits)
        self._drawn: dict[int, NDArray[np.bool_]] = {}

    def _draw(self, round: int, time: int) -> NDArray[np.bool_]:
        if round not in self._drawn:
            if len(self._drawn) >= _REMEMBERED:
                self._drawn.clear()
            self._drawn[round] = super()._draw(round, time)
        return self._drawn[round]

    def draw(self, round: int, time: int) -> NDArray[np.bool_]:
        """(users,) who takes part."""
        return self._draw(round, time)


class _SameCohort(Shard):
    """Has the honest shard's participants: the same draw from the same key."""

    def __init__(self, honest: HonestShard, hosted: Hosted, mechanism: Mechanism, key: bytes, bits: int) -> None:
        super().__init__(0, hosted, mechanism, key, bits)
        self._honest = honest

    def _draw(self, round: int, time: int) -> NDArray[np.bool_]:
        return self._honest.draw(round, time)


class _Piecewise(_SameCohort):
    """Clips pieces of a user's records on their own.

    Attributes:
        cuts: (pieces + 1,) row starts of all pieces; every user's start is among them.
    """

    cuts: NDArray[np.int64]
    _cast_once: Votes | None = None

    def _cast(self, ballot: Ballot) -> Votes:
        if self._cast_once is None:
            self._cast_once = self._cast_pieces(ballot)
        return self._cast_once

    def _cast_pieces(self, ballot: Ballot) -> Votes:
        """A user's vote is the sum of its pieces' votes; a candidate may occur once a piece."""
        routes = route(self._hosted.records, ballot.candidates, self._mechanism.votes_per_record)
        pieces = tally(routes, self.cuts, self._mechanism, self._bits)
        return replace(pieces, start=pieces.start[np.searchsorted(self.cuts, self._hosted.offsets)])


class _ClippedPerRecord(_Piecewise):
    """Averages records' clipped votes."""

    def _cast_pieces(self, ballot: Ballot) -> Votes:
        votes = super()._cast_pieces(ballot)
        records = np.repeat(np.diff(self._hosted.offsets), np.diff(votes.start))
        return replace(votes, units=votes.units // records)


class _Rounded(_SameCohort):
    """Keeps a few bits of every vote."""

    def _cast(self, ballot: Ballot) -> Votes:
        votes = super()._cast(ballot)
        lost = self._bits - _COARSE_BITS
        return replace(votes, units=votes.units >> lost << lost)


class _Forgetful(_SameCohort):
    """Loses votes of participants."""

    def _draw(self, round: int, time: int) -> NDArray[np.bool_]:
        kept = [participates(b"lost on the way", round, id, 1 - _LOST) for id in self._hosted.ids]
        return np.asarray(super()._draw(round, time) & np.array(kept), bool)


class _FixedCohort(Shard):
    """As many participants in every round, drawn without replacement."""

    def _draw(self, round: int, time: int) -> NDArray[np.bool_]:
        rng = stream(int.from_bytes(self._key, "little"), Purpose.PARTICIPATION, round)
        drawn = np.zeros(len(self._hosted.ids), bool)
        drawn[rng.choice(len(drawn), int(self._mechanism.q * len(drawn)), replace=False)] = True
        return drawn


def shard_of(bug: str, world: World, honest: HonestShard, mechanism: Mechanism, key: bytes) -> Shard | None:
    """One shard that hosts everybody, with this bug; ``None`` where the bug is not a shard's."""
    hosted, bits = world.hosted, world.bits
    same = honest, hosted, mechanism, key, bits
    match bug:
        case "no clipping":  # a histogram's norm is at most 1
            return _SameCohort(honest, hosted, replace(mechanism, clip=1.0), key, bits)
        case "sum of record votes" | "clipped per record":
            by_record = (_Piecewise if bug == "sum of record votes" else _ClippedPerRecord)(*same)
            by_record.cuts = np.arange(hosted.offsets[-1] + 1)
            return by_record
        case "votes per label":
            by_label = _Piecewise(*same)
            by_label.cuts = np.union1d(hosted.offsets, np.flatnonzero(np.diff(world.labels)) + 1)
            return by_label
        case "larger q":
            return Shard(0, hosted, replace(mechanism, q=min(1.0, 2 * mechanism.q)), key, bits)
        case "votes rounded":
            return _Rounded(*same)
        case "votes dropped":
            return _Forgetful(*same)
        case "cohort of fixed size":
            return _FixedCohort(0, hosted, mechanism, key, bits)
        case _:
            return None
