"""What a round puts before every client."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.bank import Bank, Commitment
from coalmine.protocol.errors import BankError


@dataclass(frozen=True)
class Ballot:
    """A committed bank, embedded with the bank's encoder at the clients' side.

    Attributes:
        bank: the p candidates that were sent.
        commitment: what was published before the draw; clients check ``bank`` against it.
        candidates: (p, d) float32 embeddings of the bank's texts.
        positions: (r,) ascending, public positions that were declared for probes, on every ballot of a study. Clients
            may keep the routes over all other candidates; the result is the same.
    """

    bank: Bank
    commitment: Commitment
    candidates: NDArray[np.float32]
    positions: NDArray[np.int64]

    def __post_init__(self) -> None:
        if len(self.candidates) != len(self.bank):
            raise BankError(
                f"{len(self.bank)} candidates but {len(self.candidates)} embeddings", remedy="embed the bank again"
            )
