"""An index of the word n-grams of one body of text, past which another is streamed.

Words are numbers: each distinct word of the indexed text has one, and 0 stands for the end of a record and for every
other word, so an n-gram with a 0 in it occurs nowhere. Equal numbers are equal words: comparing numbers is comparing
the text.

The longer n-grams of a place are indexed when its shortest one is first met, so text that nobody else holds costs one
entry a word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.disclosure.ngram_table import Chains, Table, count_whole, index_shortest, meet, note, place
from coalmine.protocol.errors import DataError

T = TypeVar("T", bound=np.generic)
_LIMIT = 2**31 - 2
_FILL = 0.6
"""Largest share of slots in use."""


@dataclass(frozen=True)
class Found:
    """n-grams of the indexed text with k holders, in the order in which they first begin, shorter ones first.

    Attributes:
        first: (l,) where each begins first in the indexed words.
        length: (l,) its words.
        holders: (l, k) ascending.
    """

    first: NDArray[np.int32]
    length: NDArray[np.int16]
    holders: NDArray[np.int32]


class NgramIndex:
    """Who holds the n-grams of the indexed text.

    Args:
        words: (w,) int32 numbers above 0, and 0 after each record.
        shortest, longest: lengths of the n-grams, 1 <= shortest <= longest < 2^15.
        width: distinct holders remembered per n-gram, >= 2.
        hash_bits: of the 64 that are used. For tests of collisions; the result does not depend on it.

    Raises:
        DataError: more words or n-grams than can be numbered.
    """

    def __init__(
        self, words: NDArray[np.int32], shortest: int, longest: int, width: int, *, hash_bits: int = 64
    ) -> None:
        _check_size(len(words))
        self._words = words
        self._shortest, self._longest = shortest, longest
        self._mask = np.uint64(2**hash_bits - 1)
        none = np.empty(0, np.int32)
        self._table = Table(np.full(1, -1, np.int32), np.empty(0, np.uint64), none, np.empty(0, np.int16))
        self._holders = np.empty((0, width), np.int32)
        self._entries = 0
        room = count_whole(words, shortest)
        self._chains = Chains(np.empty(room, np.int32), np.full(len(words), -1, np.int32))
        self._reserve(room)
        self._entries = index_shortest(words, shortest, self._mask, self._chains, self._table)

    def add(self, words: NDArray[np.int32], holders: NDArray[np.int32]) -> None:
        """Note who holds the n-grams of another text.

        Args:
            words: (v,) numbers of the index's words; 0 for other words and after each record.
            holders: (v,) >= 0, the holder of each word.

        Raises:
            DataError: more n-grams than can be numbered.
        """
        met = np.empty(len(words), np.int32)
        places = meet(words, met, self._shortest, self._mask, self._words, self._chains, self._table)
        self._reserve(self._entries + places * (self._longest - self._shortest))
        lengths = self._shortest, self._longest
        index = self._mask, self._words, self._chains, self._table, self._entries
        self._entries = note(words, holders, met, self._holders, *lengths, *index)

    def held_by(self, k: int) -> Found:
        """The n-grams with exactly k holders so far, 1 <= k < width."""
        holders = self._holders[: self._entries]
        hit = np.flatnonzero((holders[:, k - 1] >= 0) & (holders[:, k] < 0))
        first, length = self._table.first[hit], self._table.lengths[hit]
        order = np.argsort(first * np.int64(1 << 16) + length)
        return Found(first[order], length[order], np.sort(holders[hit[order], :k], axis=1))

    def _reserve(self, entries: int) -> None:
        _check_size(entries)
        slots, hashes, first, lengths = self._table
        have = len(hashes)
        if entries > have:
            room = min(_LIMIT, max(entries, have + have // 4))
            hashes, first, lengths = _enlarged(hashes, room), _enlarged(first, room), _enlarged(lengths, room)
            self._holders = _enlarged(self._holders, room)
            self._holders[have:] = -1
        if entries > _FILL * len(slots):
            slots = np.full(1 << int(np.ceil(np.log2(entries / _FILL))), -1, np.int32)
            if self._entries:
                place(hashes, self._entries, slots)
        self._table = Table(slots, hashes, first, lengths)


def _check_size(size: int) -> None:
    if size > _LIMIT:
        raise DataError(
            f"more than {_LIMIT:,} n-grams in the synthetic output", remedy="audit it in parts, or take fewer lengths"
        )


def _enlarged(array: NDArray[T], room: int) -> NDArray[T]:
    larger = np.empty((room, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
