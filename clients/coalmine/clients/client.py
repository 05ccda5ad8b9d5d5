"""One user's side of a round."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.ballot import Ballot
from coalmine.protocol.bank import verify
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.randomness import participates
from coalmine.protocol.route import route
from coalmine.protocol.tally import tally


@dataclass(frozen=True)
class Client:
    """A user with its own data, random stream and draw.

    Attributes:
        id: the user. records: (n, d) float32 embedded records, n >= 0.
    """

    id: str
    records: NDArray[np.float32] = field(repr=False)

    def takes_part(self, key: bytes, round: int, q: float) -> bool:
        """This client's own Poisson draw."""
        return participates(key, round, self.id, q)

    def vote(self, ballot: Ballot, mechanism: Mechanism, bits: int) -> NDArray[np.int64]:
        """Check the commitment, then vote.

        Returns:
            (p,) grid units, equal to ``protocol.vote.vote``.

        Raises:
            CommitmentMismatch: the bank is not the committed one.
        """
        verify(ballot.bank, ballot.commitment)
        return self.votes_on(ballot.candidates, mechanism, bits)

    def votes_on(self, candidates: NDArray[np.float32], mechanism: Mechanism, bits: int) -> NDArray[np.int64]:
        """The vote on (p, d) embedded candidates, (p,) grid units; an auditor computes its own canary's so."""
        routes = route(self.records, candidates, mechanism.votes_per_record)
        votes = tally(routes, np.array([0, len(self.records)]), mechanism, bits)
        units = np.zeros(len(candidates), np.int64)
        units[votes.index] = votes.units
        return units
