"""The ports through which rooms meet. Fakes ship beside the real implementations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.bank import Bank, Commitment
from coalmine.protocol.release import Release

Advance = Callable[[int], None]
"""Called with how many more units of a stage are done."""


class Encoder(Protocol):
    """Turns text into unit vectors. The embedding of a text depends on the text alone, never on its neighbours."""

    @property
    def id(self) -> str:
        """Names model, weights digest and precision: two encoders with one id give the same bits on one machine."""
        ...

    @property
    def dimension(self) -> int: ...

    def encode(self, texts: Sequence[str], *, what: str = "texts") -> NDArray[np.float32]:
        """(n, d) L2-normalised float32, in the order of ``texts``. ``what`` names the texts for a progress display.

        Raises:
            ModelError: an embedding is not finite.
        """
        ...


class Generator(Protocol):
    """Writes candidate texts. Deterministic given (prompt, seed); never sees private records.

    Implementations may return blank, repeated or unfaithful texts: callers judge, count and replace.
    """

    @property
    def id(self) -> str:
        """Names implementation, model and weights digest."""
        ...

    def sample(self, labels: Sequence[str], seed: int) -> list[str]:
        """One text per given label, from the label alone."""
        ...

    def paraphrase(self, texts: Sequence[str], seed: int) -> list[str]:
        """One rewording per text."""
        ...

    def vary(self, examples: Sequence[Sequence[str]], seed: int) -> list[str]:
        """One new text per group of examples, in their manner."""
        ...


class AuditSink(Protocol):
    """How the server hands an auditor what is public about a round."""

    def committed(self, round: int, commitment: Commitment) -> None:
        """Called before the cohort is drawn."""
        ...

    def released(self, release: Release) -> None: ...


class Population(Protocol):
    """The clients and their trusted aggregator, as the server sees them: it asks for a round and gets a release."""

    def releases(self, rounds: Sequence[int], bank: Bank, commitment: Commitment) -> list[Release]:
        """For each round let every client check the commitment, draw its participation and vote.

        Raises:
            CommitmentMismatch: the bank is not the committed one; nothing is released.
        """
        ...
