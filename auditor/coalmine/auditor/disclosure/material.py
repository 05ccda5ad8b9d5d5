"""What is audited, held in memory: for a Python call and for the rounds of a study."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.disclosure.feature_class import Entry
from coalmine.protocol.errors import DataError


@dataclass(frozen=True)
class InMemory:
    """A `Material` of lists.

    Attributes:
        entries: all private records. train: (n,). output: the synthetic records.
    """

    entries: tuple[Entry, ...] = field(repr=False)
    train: NDArray[np.bool_]
    output: tuple[str, ...] = field(repr=False)

    def private(self) -> Iterator[Entry]:
        return iter(self.entries)

    def synthetic(self) -> Iterator[str]:
        return iter(self.output)


def in_memory(train: Sequence[Iterable[str]], holdout: Sequence[Iterable[str]], synthetic: Iterable[str]) -> InMemory:
    """Material from the records of each user.

    Args:
        train, holdout: one group of records per user.

    Raises:
        DataError: a split without users, no synthetic record.
    """
    output = tuple(synthetic)
    for name, there in (("train", len(train)), ("holdout", len(holdout)), ("synthetic", len(output))):
        if not there:
            raise DataError("there is no record", where=name, remedy="all three sets need records")
    entries = tuple(Entry(user, text) for user, texts in enumerate((*train, *holdout)) for text in texts)
    return InMemory(entries, np.arange(len(train) + len(holdout)) < len(train), output)
