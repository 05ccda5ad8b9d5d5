"""A shard: one worker that hosts thousands of clients.

Every client keeps its own data, its own stream and its own draw; the shard only computes their votes together. What
leaves a shard in a round is one sum on the fixed-point grid, handed to the aggregator and to nobody else. All calls
name everything they depend on, so a call repeated after a crash gives the same sum.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.clients.client import Client
from coalmine.clients.population.conditions import Conditions
from coalmine.protocol.ballot import Ballot
from coalmine.protocol.bank import verify
from coalmine.protocol.errors import ModelError
from coalmine.protocol.noise import SharedNoise, grid_noise
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.randomness import Purpose, Randomness, participates
from coalmine.protocol.route import Routes, reroute, route_retained
from coalmine.protocol.tally import Votes, add_votes, tally

_BANKS_KEPT = 8
"""Banks whose routes are kept, for studies that come back to the banks of several rounds."""

HandIn = Callable[..., None]
"""Called with (rounds, shard number, (len(rounds), p) sums), and, where participants share the noise, how many shares
each sum holds."""


@dataclass(frozen=True)
class Hosted:
    """The clients of one shard.

    Attributes:
        ids: n user ids. records: (rows, d) float32, the embedded records of all of them.
        offsets: (n + 1,) client u holds rows ``offsets[u] : offsets[u + 1]``.
    """

    ids: tuple[str, ...]
    records: NDArray[np.float32]
    offsets: NDArray[np.int64]


class Shard:
    """Hosts clients and answers for them.

    Args:
        number: this shard's number in the round, which lets the aggregator recognise a repeated part.
        key: decides participation; known to the clients' side only.
        bits: fractional bits of the public grid.
        conditions: how the hosted clients come and go; ``None``: all of them always answer.
        shares: how participants share the noise, and where it comes from; ``None``: the aggregator adds all of it.
    """

    def __init__(
        self,
        number: int,
        hosted: Hosted,
        mechanism: Mechanism,
        key: bytes,
        bits: int,
        conditions: Conditions | None = None,
        shares: tuple[SharedNoise, Randomness] | None = None,
    ) -> None:
        self._number = number
        self._hosted = hosted
        self._mechanism = mechanism
        self._key = key
        self._bits = bits
        self._shares = shares
        self._conditions = conditions or Conditions()
        self._answering: tuple[int, NDArray[np.bool_]] | None = None
        self._retained: dict[bytes, Routes] = {}
        self._votes: tuple[bytes, Votes] | None = None

    def process_id(self) -> int:
        """For tests that kill this worker."""
        return os.getpid()

    def take_part(
        self, ballot: Ballot, rounds: Sequence[int], guest: Client | None, hand_in: HandIn, time: int | None = None
    ) -> None:
        """Draw every client's participation in each round and hand in one sum a round.

        Args:
            guest: a further client hosted for these rounds only (a canary that is eligible). It is always available
                and never drops out: the strongest case that the claim covers.
            time: where the rounds stand in the schedule of availability; ``None``: each at its own number.

        Raises:
            CommitmentMismatch: the bank is not the committed one; nothing is handed in.
        """
        votes = self._cast(ballot)
        sums = np.zeros((len(rounds), len(ballot.bank)), np.int64)
        visit = guest.vote(ballot, self._mechanism, self._bits) if guest is not None else None
        came = []
        for row, number in enumerate(rounds):
            drawn = self._draw(number, number if time is None else time)
            add_votes(votes, drawn, sums[row])
            participants = [self._hosted.ids[user] for user in np.flatnonzero(drawn)]
            if guest is not None and visit is not None and guest.takes_part(self._key, number, self._mechanism.q):
                sums[row] += visit
                participants.append(guest.id)
            if self._shares is not None:
                self._add_shares(participants, number, sums[row], *self._shares)
            came.append(len(participants))
        if self._shares is None:
            hand_in(rounds, self._number, sums)
        else:
            hand_in(rounds, self._number, sums, came)

    def votes_on(self, ballot: Ballot, coordinates: NDArray[np.int64], time: int = 0) -> NDArray[np.float64]:
        """Every client's vote on some coordinates, zero for those who would not answer at this time: (n,
        len(coordinates)). What only a simulation's owner may know: the exact audit needs it, no party of the protocol
        ever gets it."""
        votes = self._cast(ballot).on(coordinates, len(ballot.bank))
        votes[~self._would_answer(time)] = 0
        return votes

    def _add_shares(
        self,
        participants: Sequence[str],
        round: int,
        into: NDArray[np.int64],
        sharing: SharedNoise,
        randomness: Randomness,
    ) -> None:
        """Every participant's own share of the noise, in place."""
        std = sharing.share_std(self._mechanism)
        for user in participants:
            into += grid_noise(randomness, Purpose.NOISE_SHARE, std, self._bits, len(into), round, user)

    def _draw(self, round: int, time: int) -> NDArray[np.bool_]:
        q, ids = self._mechanism.q, self._hosted.ids
        drawn = np.fromiter((participates(self._key, round, id, q) for id in ids), bool, len(ids))
        return np.asarray(drawn & self._would_answer(time), bool)

    def _would_answer(self, time: int) -> NDArray[np.bool_]:
        if self._answering is None or self._answering[0] != time:
            self._answering = time, self._conditions.answering(self._key, time, self._hosted.ids)
        return self._answering[1]

    def _cast(self, ballot: Ballot) -> Votes:
        verify(ballot.bank, ballot.commitment)
        key = ballot.commitment.digest.encode() + hashlib.sha256(ballot.candidates.tobytes()).digest()
        if self._votes is None or self._votes[0] != key:
            routes = reroute(
                self._routes_without_probes(ballot),
                self._hosted.records,
                ballot.candidates[ballot.positions],
                ballot.positions,
            )
            votes = tally(routes, self._hosted.offsets, self._mechanism, self._bits)
            self._votes = (key, votes)
        return self._votes[1]

    def _routes_without_probes(self, ballot: Ballot) -> Routes:
        if self._hosted.records.shape[1] != ballot.candidates.shape[1]:
            raise ModelError(
                f"records have {self._hosted.records.shape[1]} dimensions, the bank {ballot.candidates.shape[1]}",
                remedy="embed both with the bank's encoder",
            )
        kept = np.setdiff1d(np.arange(len(ballot.bank)), ballot.positions)
        key = hashlib.sha256(ballot.positions.tobytes() + ballot.candidates[kept].tobytes()).digest()
        if key not in self._retained:
            if len(self._retained) == _BANKS_KEPT:
                del self._retained[next(iter(self._retained))]
            self._retained[key] = route_retained(
                self._hosted.records, ballot.candidates, self._mechanism.votes_per_record, ballot.positions
            )
        return self._retained[key]
