"""Which texts are embedded together. Pure.

Only texts of exactly the same number of tokens share a batch, so nothing is ever padded: padding changes the bits of a
row, neighbours of the same length do not (see `sentence`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_TOKENS = 1024
"""Tokens of a full batch: the throughput of one core is flat around it, and activations still fit its cache."""

MIN_TOKENS = 64
"""Matrix products of a few rows take other kernels, with other bits: smaller batches are filled up with copies."""


@dataclass(frozen=True)
class Batch:
    """Texts of one token length.

    Attributes:
        rows: (b,) indices of texts; behind the first ``kept``, copies that only fill the batch up.
        kept: how many leading rows count.
    """

    rows: NDArray[np.intp]
    kept: int


def plan_batches(lengths: Sequence[int], *, alone: bool = False) -> Iterator[Batch]:
    """Every text in one batch, longest texts first.

    Args:
        lengths: tokens of each text, >= 1.
        alone: one text per batch: without neighbours, nothing can depend on them.
    """
    tokens = np.asarray(lengths, dtype=np.intp)
    for length in np.unique(tokens)[::-1]:
        group = np.flatnonzero(tokens == length)
        least = 1 if alone else least_rows(int(length))
        most = 1 if alone else max(least, MAX_TOKENS // int(length))
        for start in range(0, len(group), most):
            part = group[start : start + most]
            yield Batch(np.resize(part, max(len(part), least)), len(part))


def least_rows(length: int) -> int:
    """Rows of the smallest batch of texts of ``length`` tokens."""
    return -(-MIN_TOKENS // length)
