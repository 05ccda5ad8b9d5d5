"""A pool of generated texts, with the account of how it came about."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coalmine.protocol.errors import BankError


@dataclass(frozen=True)
class Tally:
    """What a generator delivered. Rejected outputs were replaced by new ones, never kept and never padded.

    Attributes:
        asked: texts asked for, replacements included.
        blank, repeated, refused, unfaithful: outputs rejected, by reason.
        moved: texts that other sources wrote in place of sources that could not deliver their share.
    """

    asked: int
    blank: int = 0
    repeated: int = 0
    refused: int = 0
    unfaithful: int = 0
    moved: int = 0


@dataclass(frozen=True)
class TextPool:
    """Distinct texts for a bank or for probes.

    Attributes:
        texts: distinct, not blank.
        sources: for each text the index of the text it rewords, or the index of its label.
        generator_id: implementation, model and weights digest.
        cosines: cosine of each text to its source, ``None`` where there is no source text.
    """

    texts: tuple[str, ...]
    sources: tuple[int, ...]
    generator_id: str
    tally: Tally
    cosines: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if len(set(self.texts)) != len(self.texts):
            raise BankError("a pool holds the same text twice", remedy="every pool text must be unique")
        if len(self.sources) != len(self.texts):
            raise BankError(f"{len(self.texts)} texts but {len(self.sources)} sources", remedy="one source per text")

    def cosine_quantiles(self) -> dict[str, float]:
        """The 0, 25, 50, 75 and 100 % quantiles of the cosine to the source; empty where there is no source text."""
        if self.cosines is None:
            return {}
        levels = (0.0, 0.25, 0.5, 0.75, 1.0)
        return {
            f"{level:.0%}": float(value) for level, value in zip(levels, np.quantile(self.cosines, levels), strict=True)
        }
