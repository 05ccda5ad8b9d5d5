"""A fake encoder for tests: no model, no file, microseconds per text."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"\w+")
_SPREAD = 7
"""Coordinates that one word touches."""


class HashEncoder:
    """A bag of hashed words: texts that share words are close; the whole text adds a little, so that no two tie.

    Args:
        dimension: >= 2.
    """

    def __init__(self, dimension: int = 64) -> None:
        if dimension < 2:
            raise ValueError(f"a dimension of at least 2 is needed, not {dimension}")
        self._dimension = dimension

    @property
    def id(self) -> str:
        return f"hashed-words:{self._dimension}"

    @property
    def dimension(self) -> int:
        return self._dimension

    def encode(self, texts: Sequence[str], *, what: str = "texts") -> NDArray[np.float32]:
        """(n, d) unit vectors; see `coalmine.protocol.ports.Encoder`."""
        vectors = np.zeros((len(texts), self._dimension))
        for row, text in zip(vectors, texts, strict=True):
            for word in _WORD.findall(text.lower()):
                _add(row, word, 1.0)
            _add(row, f"whole text {text}", 0.25)
        # Words add multiples of four quarters and the whole text an odd number (7) of them: no vector is zero.
        norms = np.sqrt(np.sum(vectors * vectors, axis=1, keepdims=True))
        unit: NDArray[np.float32] = (vectors / norms).astype(np.float32)
        return unit


def _add(row: NDArray[np.float64], word: str, weight: float) -> None:
    for coordinate, sign in _touched(word):
        row[coordinate % len(row)] += sign * weight


@functools.lru_cache(maxsize=65_536)
def _touched(word: str) -> tuple[tuple[int, int], ...]:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=4 * _SPREAD).digest()
    numbers = np.frombuffer(digest, dtype="<u4")
    return tuple((int(number >> 1), 1 if number & 1 else -1) for number in numbers)
