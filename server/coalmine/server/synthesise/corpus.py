"""What a generator is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from coalmine.protocol.errors import DataError


class Record(NamedTuple):
    """One training record; ``user`` is an index into the corpus."""

    user: int
    text: str
    label: str


@dataclass(frozen=True)
class Corpus:
    """The training split, user by user.

    Attributes:
        records: for every user its texts, at least one.
        labels: one per record, "" where there is none. Which labels occur counts as public.

    Raises:
        DataError: no user, a user without records, or labels that do not pair with the records.
    """

    records: tuple[tuple[str, ...], ...] = field(repr=False)
    labels: tuple[tuple[str, ...], ...] = field(repr=False)

    def __post_init__(self) -> None:
        if not self.records or not all(self.records):
            raise DataError(
                "there is nothing to learn from", where="training split", remedy="every user needs a record"
            )
        if [len(texts) for texts in self.records] != [len(labels) for labels in self.labels]:
            raise DataError("labels do not pair with records", where="training split", remedy="one each")

    def __iter__(self) -> Iterator[Record]:
        """Every record, user by user."""
        for user, (texts, labels) in enumerate(zip(self.records, self.labels, strict=True)):
            for text, label in zip(texts, labels, strict=True):
                yield Record(user, text, label)

    def __len__(self) -> int:
        """Records in all."""
        return sum(map(len, self.records))

    @property
    def known_labels(self) -> tuple[str, ...]:
        """The different labels, sorted; ("",) where there is none."""
        return tuple(sorted({label for labels in self.labels for label in labels}))


@dataclass(frozen=True)
class Synthetic:
    """A synthetic data set.

    Attributes:
        texts: the records.
        labels: one per record.
        generator: what wrote them, with everything that would make it another generator.
        blank: texts left out because nothing was written.
    """

    texts: tuple[str, ...] = field(repr=False)
    labels: tuple[str, ...] = field(repr=False)
    generator: str
    blank: int = 0


def spread(labels: tuple[str, ...], size: int) -> list[str]:
    """``size`` labels, each as often as any other up to one: how often private records have each stays private."""
    return [labels[index % len(labels)] for index in range(size)]
