"""Canaries with a real beginning and an unusual end (Meeus et al. 2025, arXiv 2502.14921, section 4).

The beginning lets a model fall into the canary when it writes in the manner of the data; the end is surprising enough
to be told from ordinary text, and not so strange that a model would never write it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.errors import DataError, StudyError

PREFIX, SUFFIX = 20, 30
PERPLEXITY, BAND = 31.0, 0.1
_TRIES = 200
_COOLEST, _HOTTEST = 0.05, 20.0


class SuffixModel(Protocol):
    """A language model of public text that goes on from a beginning."""

    def go_on(
        self, beginning: Sequence[str], words: int, temperature: float, rng: np.random.Generator
    ) -> tuple[list[str], float]:
        """So many further words, and their perplexity under the model itself (at temperature 1)."""
        ...


class Canary(NamedTuple):
    """A canary's text, and the index of the record that it begins like."""

    text: str
    source: int


@dataclass(frozen=True)
class Recipe:
    """What a canary looks like.

    Attributes:
        prefix: words of a real record. suffix: generated words.
        perplexity: of the suffix, within ``band`` of it (0.1: from 0.9 to 1.1 times), under the model that wrote it.
    """

    prefix: int = PREFIX
    suffix: int = SUFFIX
    perplexity: float = PERPLEXITY
    band: float = BAND

    def __post_init__(self) -> None:
        if self.prefix < 1 or self.suffix < 1:
            raise StudyError("a canary has a beginning and an end", where="canaries", remedy="at least a word of each")
        if not self.perplexity > 1 or not 0 < self.band < 1:
            raise StudyError("no suffix can be like that", where="canaries", remedy="perplexity > 1, band in (0, 1)")


def make_canaries(
    records: Sequence[str], count: int, model: SuffixModel, recipe: Recipe, rng: np.random.Generator
) -> list[Canary]:
    """``count`` canaries with different beginnings.

    The temperature follows from one try to the next: up after a suffix that was too ordinary, down after a strange one.

    Args:
        records: private records that are in neither split, so that a beginning gives nothing away about the canary.

    Raises:
        DataError: too few records are long enough and begin differently, or suffixes never come near the perplexity.
    """
    beginnings: dict[tuple[str, ...], int] = {}
    for index in rng.permutation(len(records)).tolist():
        words = records[index].split()
        if len(words) >= recipe.prefix and len(beginnings) < count:
            beginnings.setdefault(tuple(words[: recipe.prefix]), index)
    if len(beginnings) < count:
        raise DataError(
            f"{count} canaries need as many records of {recipe.prefix} words that begin differently, "
            f"{len(beginnings)} are there",
            where="canaries",
            remedy="fewer canaries, a shorter prefix, or more records",
        )
    temperature = 1.0
    made = []
    for beginning, source in beginnings.items():
        for _ in range(_TRIES):
            suffix, perplexity = model.go_on(beginning, recipe.suffix, temperature, rng)
            if abs(perplexity / recipe.perplexity - 1) <= recipe.band:
                made.append(Canary(" ".join((*beginning, *suffix)), source))
                break
            step = (recipe.perplexity / perplexity) ** 0.25
            temperature = min(max(temperature * step, _COOLEST), _HOTTEST)
        else:
            raise DataError(
                f"in {_TRIES} tries no suffix had a perplexity within {recipe.band:.0%} of {recipe.perplexity:g}",
                where="canaries",
                remedy="another perplexity, a wider band, or a suffix model of more text",
            )
    return made


class WordChain:
    """A chain of words: the next one by the last one, mixed with how common words are.

    P(w | v) = (1 - mix) c(v, w) / c(v) + mix c(w) / N; only the second term where v was never followed.

    Args:
        texts: public texts, words between white space.
        mix: in (0, 1].

    Raises:
        DataError: no word. StudyError: a mix out of its range.
    """

    def __init__(self, texts: Sequence[str], mix: float = 0.1) -> None:
        if not 0 < mix <= 1:
            raise StudyError(f"a mix of {mix!r}", where="mix", remedy="in (0, 1]")
        split = [text.split() for text in texts]
        self._words: dict[str, int] = {}
        for text in split:
            for word in text:
                self._words.setdefault(word, len(self._words))
        if not self._words:
            raise DataError("public texts without a word", where="suffix model", remedy="texts with words")
        self._spelt = list(self._words)
        counts = np.zeros(len(self._words))
        following: dict[int, dict[int, int]] = {}
        for text in split:
            ids = [self._words[word] for word in text]
            np.add.at(counts, ids, 1.0)
            for first, second in itertools.pairwise(ids):
                after = following.setdefault(first, {})
                after[second] = after.get(second, 0) + 1
        self._common: NDArray[np.float64] = counts / counts.sum()
        self._following = following
        self._mix = mix

    def next_word(self, last: str) -> NDArray[np.float64]:
        """(words,) distribution of the word after ``last``."""
        after = self._following.get(self._words.get(last, -1))
        if after is None:
            return self._common
        shares: NDArray[np.float64] = self._mix * self._common
        seen = np.fromiter(after.values(), np.float64, len(after))
        shares[np.fromiter(after.keys(), np.int64, len(after))] += (1 - self._mix) * seen / seen.sum()
        return shares

    def go_on(
        self, beginning: Sequence[str], words: int, temperature: float, rng: np.random.Generator
    ) -> tuple[list[str], float]:
        """Further words and their perplexity."""
        last = beginning[-1]
        chosen, surprise = [], 0.0
        for _ in range(words):
            shares = self.next_word(last)
            heated = np.exp((np.log(shares) - np.log(shares.max())) / temperature)
            index = int(
                np.searchsorted(heated.cumsum(), rng.random() * heated.sum(), side="right").clip(max=len(shares) - 1)
            )
            last = self._spelt[index]
            chosen.append(last)
            surprise -= math.log(shares[index])
        return chosen, math.exp(surprise / words)
