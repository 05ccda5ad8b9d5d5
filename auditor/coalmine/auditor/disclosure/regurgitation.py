"""Regurgitation: word n-grams of private records that the synthetic output repeats (arXiv 2606.16952, section 3).

Tokens are what white space separates, compared exactly. Every n-gram counts, so one long copied passage is many
features of its holder: the tests weigh them by user (d_i).
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count, repeat

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.disclosure.counted import check_ks
from coalmine.auditor.disclosure.feature_class import Matches, Material
from coalmine.auditor.disclosure.ngrams import Found, NgramIndex
from coalmine.protocol.errors import StudyError

_LONGEST = 10_000
_BATCH = 1 << 19
"""Words that are looked up at once."""


@dataclass(frozen=True)
class Regurgitation:
    """A `DiscreteClass`: n-grams of ``n_min`` to ``n_max`` words.

    Memory grows with the synthetic output, never with the private records. See `NgramIndex`.

    Attributes:
        hash_bits: how much of the hash is used; for tests of collisions, the result does not depend on it.
    """

    n_min: int = 11
    n_max: int = 20
    name: str = "regurgitation"
    hash_bits: int = 64

    def __post_init__(self) -> None:
        if not 1 <= self.n_min <= self.n_max <= _LONGEST:
            raise StudyError(
                f"n-grams of {self.n_min} to {self.n_max} words",
                where="n-grams",
                remedy=f"needs 1 <= n_min <= n_max <= {_LONGEST}",
            )

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"word n-grams of {self.n_min} to {self.n_max} tokens between white space, compared exactly",)

    def matches(self, material: Material, ks: Sequence[int]) -> list[Matches]:
        """See `DiscreteClass`.

        Raises:
            StudyError: a k below 1, or none. DataError: more n-grams than can be numbered.
        """
        width = check_ks(ks) + 1
        numbers: defaultdict[str, int] = defaultdict(count(1).__next__)
        words, ends = _numbered(material.synthetic(), numbers)
        index = NgramIndex(words, self.n_min, self.n_max, width, hash_bits=self.hash_bits)
        with ThreadPoolExecutor(1) as pool:  # the next batch is read while the last is looked up
            added: Future[None] | None = None
            for text, users in _batches(material, numbers):
                if added is not None:
                    added.result()
                added = pool.submit(index.add, text, users)
            if added is not None:
                added.result()
        spelled = list(numbers)
        return [_matches(k, index.held_by(k), words, ends, spelled) for k in ks]


@dataclass(frozen=True)
class _Passages(Sequence[str]):
    """Stretches of numbered words, spelled out when asked for."""

    first: NDArray[np.int32]
    length: NDArray[np.int16]
    words: NDArray[np.int32]
    spelled: Sequence[str]

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN204
        if isinstance(at, slice):
            return _Passages(self.first[at], self.length[at], self.words, self.spelled)
        numbers = self.words[self.first[at] : self.first[at] + self.length[at]]
        return " ".join(self.spelled[number - 1] for number in numbers)


def _matches(
    k: int, found: Found, words: NDArray[np.int32], ends: NDArray[np.int64], spelled: Sequence[str]
) -> Matches:
    return Matches(
        k=k,
        holders=found.holders.astype(np.int64),
        features=_Passages(found.first, found.length, words, spelled),
        synthetic=np.searchsorted(ends, found.first, side="right"),
    )


def _numbered(texts: Iterable[str], numbers: defaultdict[str, int]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """All words of ``texts`` as ``numbers``, with 0 after each text, and (m,) where the next text begins."""
    words, ends = array("i"), array("q")
    for text in texts:
        words.extend(map(numbers.__getitem__, text.split()))
        words.append(0)
        ends.append(len(words))
    return np.frombuffer(words, np.int32), np.frombuffer(ends, np.int64)


def _batches(material: Material, numbers: Mapping[str, int]) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """The private words as ``numbers``, 0 for words without one and after each record, and the user of each."""
    words, users, ends = array("i"), array("i"), array("q")
    for entry in material.private():
        words.extend(map(numbers.get, entry.text.split(), repeat(0)))
        words.append(0)
        users.append(entry.user)
        ends.append(len(words))
        if len(words) >= _BATCH:
            yield _packed(words, users, ends)
            words, users, ends = array("i"), array("i"), array("q")
    yield _packed(words, users, ends)


def _packed(words: array[int], users: array[int], ends: array[int]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    return np.frombuffer(words, np.int32), np.repeat(np.frombuffer(users, np.int32), np.diff(ends, prepend=0))
