"""Features that are counted: whatever an `Extract` finds in a text.

A new class of this kind is a name and a function; `docs/disclosure-classes.md` adds one. The synthetic output is read
first, then the private records are streamed past its features, so memory grows with the synthetic output alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from coalmine.auditor.disclosure.feature_class import Extract, Matches, Material
from coalmine.protocol.errors import StudyError

ExtractMany = Callable[[Iterable[str]], Iterator[Iterable[str]]]
"""The features of many texts, in their order: an `Extract` that may work in batches."""


@dataclass(frozen=True)
class Counted:
    """A `DiscreteClass` made of an extraction.

    Attributes:
        name: one word or two, as a report shows it.
        extract: deterministic; repeats within a text are ignored.
        notes: what a reader must know about the extraction.
    """

    name: str
    extract: Extract
    notes: tuple[str, ...] = ()

    def matches(self, material: Material, ks: Sequence[int]) -> list[Matches]:
        """See `DiscreteClass`.

        Raises:
            StudyError: a k below 1, or none.
        """
        known = first_synthetic(map(self.extract, material.synthetic()))
        return count_holders(material, ks, known, lambda texts: map(self.extract, texts))


def first_synthetic(features: Iterable[Iterable[str]]) -> dict[str, int]:
    """For each feature of the synthetic records, given record by record, the index of the first record that has it."""
    known: dict[str, int] = {}
    for index, found in enumerate(features):
        for feature in found:
            known.setdefault(feature, index)
    return known


def count_holders(
    material: Material, ks: Sequence[int], known: dict[str, int], extract_many: ExtractMany
) -> list[Matches]:
    """Of the ``known`` features those held by exactly k private users, for each k.

    Distinct users are counted; no more than the largest k and one are remembered per feature.

    Args:
        known: for each feature of the synthetic output the first record with it.

    Raises:
        StudyError: a k below 1, or none.
    """
    most = check_ks(ks)
    holders: dict[str, list[int]] = {}
    awaited: deque[int] = deque()  # users of the records that an extraction in batches has read ahead

    def texts() -> Iterator[str]:
        for entry in material.private():
            awaited.append(entry.user)
            yield entry.text

    if known:
        for found in extract_many(texts()):
            user = awaited.popleft()
            for feature in found:
                if feature in known:
                    of_feature = holders.setdefault(feature, [])
                    if len(of_feature) <= most and user not in of_feature:
                        of_feature.append(user)
    ordered = sorted(holders, key=lambda feature: (known[feature], feature))
    return [_held_by(k, [feature for feature in ordered if len(holders[feature]) == k], holders, known) for k in ks]


def check_ks(ks: Sequence[int]) -> int:
    """The largest number of holders asked for.

    Raises:
        StudyError: a k below 1, or none.
    """
    if not ks or min(ks) < 1:
        raise StudyError("a rare feature is held by at least one user", where="k", remedy="k must be 1 or more")
    return max(ks)


def _held_by(k: int, features: list[str], holders: dict[str, list[int]], known: dict[str, int]) -> Matches:
    return Matches(
        k=k,
        holders=np.array([sorted(holders[feature]) for feature in features], np.int64).reshape(len(features), k),
        features=tuple(features),
        synthetic=np.array([known[feature] for feature in features], np.int64),
    )
