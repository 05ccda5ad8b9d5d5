"""Classes of features, and the port through which an auditor adds one (arXiv 2606.16952, section 3).

A disclosure is a feature that is rare among the private users, train and holdout together, and shows up in the
synthetic output. A class finds such features; the tests know nothing else about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


class Entry(NamedTuple):
    """One private record. The rows of one user may lie anywhere among the others."""

    user: int
    """Index into the users of the audit."""
    text: str


class Material(Protocol):
    """What is audited, read as often as needed and never held as a whole: files may not fit in memory."""

    @property
    def train(self) -> NDArray[np.bool_]:
        """(n,) whether each user is in the training split."""
        ...

    def private(self) -> Iterator[Entry]:
        """All records of train and holdout, in the order of the files."""
        ...

    def synthetic(self) -> Iterator[str]:
        """All synthetic records."""
        ...


@dataclass(frozen=True)
class Matches:
    """The discrete features of one class that are in the synthetic output and held by exactly ``k`` private users.

    Attributes:
        holders: (l, k) user indices, ascending in each row.
        features: l texts, possibly made when they are asked for: a copied file has millions. Private: shown by a report
            only where its reader asked for it.
        synthetic: (l,) index of the first synthetic record with the feature.
    """

    k: int
    holders: NDArray[np.int64]
    features: Sequence[str]
    synthetic: NDArray[np.int64]

    def per_user(self, users: int) -> NDArray[np.int64]:
        """(n,) d_i, the matched features that user i holds; they sum to l k."""
        return np.bincount(self.holders.ravel(), minlength=users)


@dataclass(frozen=True)
class Similarities:
    """How close the synthetic output comes to each private user.

    Attributes:
        rarity: (n,) mean cosine to the user's nearest neighbours among the other private users; low is rare. Not a
            number for users without an embedding.
        nearest: (n, kappa_y) cosines to the nearest synthetic records, descending; fewer columns where there are fewer
            records. Not a number for users without an embedding.
        synthetic: (n,) index of the nearest synthetic record; -1 for users without an embedding.
    """

    rarity: NDArray[np.float64]
    nearest: NDArray[np.float64]
    synthetic: NDArray[np.int64]


@runtime_checkable
class DiscreteClass(Protocol):
    """Features that a text has or has not."""

    @property
    def name(self) -> str: ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about how features were found (a fallback, a missing model)."""
        ...

    def matches(self, material: Material, ks: Sequence[int]) -> list[Matches]:
        """For each k the features held by exactly k users that are in the synthetic output."""
        ...


@runtime_checkable
class SimilarityClass(Protocol):
    """Closeness in a space of embeddings."""

    @property
    def name(self) -> str: ...

    @property
    def notes(self) -> tuple[str, ...]: ...

    def similarities(self, material: Material) -> Similarities: ...


FeatureClass = DiscreteClass | SimilarityClass


class Extract(Protocol):
    """The features of one text: all that a new discrete class needs."""

    def __call__(self, text: str) -> Iterable[str]: ...
