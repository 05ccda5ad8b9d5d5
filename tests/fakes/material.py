"""Material of an audit, held in memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from coalmine.auditor.disclosure.feature_class import Entry


@dataclass(frozen=True)
class Held:
    """``records``: (user, text) in the order of the files."""

    records: Sequence[tuple[int, str]]
    outputs: Sequence[str]
    users: int | None = None

    @property
    def train(self):
        users = max((user for user, _ in self.records), default=-1) + 1 if self.users is None else self.users
        return np.arange(users) % 2 == 0

    def private(self) -> Iterator[Entry]:
        return (Entry(user, text) for user, text in self.records)

    def synthetic(self) -> Iterator[str]:
        return iter(self.outputs)
