"""An n-gram model of synthetic text, asked about the canaries alone.

Only n-grams of the canaries matter, so only they get numbers; counting is a search in sorted keys. Texts are read as
words between white space; no n-gram reaches over the edge of a text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.errors import DataError, StudyError

_UNKNOWN = -1
_TEXTS_AT_ONCE = 20_000

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class CanaryGrams:
    """Every place of every canary as an n-gram: its last word given up to n - 1 words before it.

    Attributes:
        words: number of each word of a canary. padding: number of what stands before a text.
        levels: for each length 1..n, the sorted keys of the n-grams that occur; a key is made of the number of the
            n-gram without its last word, and the last word.
        grams, contexts: (places,) numbers of the n-gram and of the context at each place.
        canary: (places,) whose place it is. count: canaries in all.
    """

    n: int
    words: dict[str, int]
    levels: tuple[Ids, ...]
    grams: Ids
    contexts: Ids
    canary: Ids
    count: int

    @property
    def padding(self) -> int:
        return len(self.words)


def canary_grams(canaries: Sequence[str], n: int) -> CanaryGrams:
    """Number the n-grams of the canaries.

    Args:
        n: length of an n-gram, 1 to 8.

    Raises:
        StudyError: n out of its range. DataError: no canary, or one without a word.
    """
    if not 1 <= n <= 8:
        raise StudyError(f"n-grams of {n} words", where="n", remedy="1 to 8")
    split = [text.split() for text in canaries]
    if not split or not all(split):
        raise DataError("a canary has no word, or there is none", where="canaries", remedy="texts with words")
    words: dict[str, int] = {}
    for text in split:
        for word in text:
            words.setdefault(word, len(words))
    ids, owner = _ids(split, words, n)
    levels: list[Ids] = []
    numbers = [np.zeros(len(ids), np.int64)]
    for length in range(1, n + 1):
        keys = _keys(numbers[-1], ids, length, len(words) + 1)
        level = np.unique(keys[keys >= 0])
        levels.append(level)
        numbers.append(_lookup(keys, level))
    ends = owner >= 0
    contexts = np.roll(numbers[n - 1], 1)  # a padding word stands before the first, so that nothing wraps around
    return CanaryGrams(n, words, tuple(levels), numbers[n][ends], contexts[ends], owner[ends], len(split))


def count_grams(texts: Iterable[str], grams: CanaryGrams) -> tuple[Ids, Ids, int]:
    """How often synthetic text has the canaries' n-grams.

    Returns:
        (n-grams,) counts; (contexts,) how often each context is followed by any word; the number of words in all.
    """
    n = grams.n
    found = np.zeros(len(grams.levels[-1]), np.int64)
    before = np.zeros(len(grams.levels[n - 2]) if n > 1 else 1, np.int64)
    total = 0
    for some in _chunks(texts):
        split = [text.split() for text in some]
        ids, owner = _ids(split, grams.words, n)
        numbers = np.zeros(len(ids), np.int64)
        context = numbers
        for length, level in enumerate(grams.levels, start=1):
            context = numbers
            numbers = _lookup(_keys(numbers, ids, length, len(grams.words) + 1), level)
        ends = owner >= 0
        context = np.roll(context, 1)
        found += np.bincount(numbers[ends & (numbers >= 0)], minlength=len(found))
        before += np.bincount(context[ends & (context >= 0)], minlength=len(before))
        total += int(ends.sum())
    return found, before, total


def log_probability(grams: CanaryGrams, texts: Iterable[str], vocabulary: int, smoothing: float) -> NDArray[np.float64]:
    """(canaries,) log-probability of each canary under the smoothed n-gram model of the texts.

    log P = sum over words of log((c(context, word) + s) / (c(context) + s V)).

    Args:
        vocabulary: V, words that can come next; one number for all models that are compared.
        smoothing: s > 0; 1 is Laplace's.

    Raises:
        StudyError: a number out of its range. DataError: texts without a word.
    """
    if not smoothing > 0 or vocabulary < 1:
        raise StudyError("no n-gram may be impossible", where="smoothing", remedy="a number > 0, and a vocabulary")
    found, before, total = count_grams(texts, grams)
    if total == 0:
        raise DataError("the synthetic text has no word", where="synthetic", remedy="texts with words")
    places = np.log(found[grams.grams] + smoothing) - np.log(before[grams.contexts] + smoothing * vocabulary)
    return np.bincount(grams.canary, places, grams.count).astype(np.float64)


def _ids(split: Sequence[Sequence[str]], words: dict[str, int], n: int) -> tuple[Ids, Ids]:
    """Words as numbers with n - 1 paddings (at least one) before each text, and whose each is (-1: padding)."""
    gap = max(1, n - 1)
    lengths = np.array([len(text) for text in split], np.int64)
    starts = np.cumsum(lengths + gap) - lengths
    size = int((lengths + gap).sum())
    ids, owner = np.full(size, len(words), np.int64), np.full(size, -1, np.int64)
    flat = np.fromiter((words.get(word, _UNKNOWN) for text in split for word in text), np.int64, int(lengths.sum()))
    texts = np.repeat(np.arange(len(split)), lengths)
    within = np.arange(len(flat)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    places = starts[texts] + within if len(flat) else np.zeros(0, np.int64)
    ids[places], owner[places] = flat, texts
    return ids, owner


def _keys(shorter: Ids, ids: Ids, length: int, base: int) -> Ids:
    """Key of the n-gram of ``length`` words ending at each place; -1 where a part of it is no canary's."""
    before = np.roll(shorter, 1) if length > 1 else shorter
    keys = before * base + ids
    keys[(before < 0) | (ids < 0)] = -1
    if length > 1:
        keys[: length - 1] = -1  # nothing stands before the first place
    return keys


def _lookup(keys: Ids, level: Ids) -> Ids:
    """Number of each key in the sorted level, -1 where it is not there."""
    if not len(level):
        return np.full(len(keys), -1, np.int64)
    places = np.searchsorted(level, keys).clip(max=len(level) - 1)
    return np.where(level[places] == keys, places, -1)


def _chunks(texts: Iterable[str]) -> Iterable[list[str]]:
    some: list[str] = []
    for text in texts:
        some.append(text)
        if len(some) == _TEXTS_AT_ONCE:
            yield some
            some = []
    if some:
        yield some
