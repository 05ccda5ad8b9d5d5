"""What two texts share, word by word, for a reader's eye."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import NamedTuple

_WORD = re.compile(r"\S+")
_LONGEST = 1_500
"""Words of a text that are compared; comparing takes the product of two lengths."""
_EDGES = ".,;:!?\"'()[]{}<>«»“”‘’"


class Piece(NamedTuple):
    """Consecutive words of a text, shared with the other one or not."""

    text: str
    shared: bool


class Overlap(NamedTuple):
    """Both texts in pieces.

    ``longest``: words of the longest common run.
    """

    left: tuple[Piece, ...]
    right: tuple[Piece, ...]
    longest: int


def overlap(left: str, right: str) -> Overlap:
    """Runs of at least two common words, and single ones with a digit or an @; case and edge marks do not count."""
    a, b = _WORD.findall(left)[:_LONGEST], _WORD.findall(right)[:_LONGEST]
    matcher = SequenceMatcher(None, list(map(_plain, a)), list(map(_plain, b)), autojunk=False)
    runs = [run for run in matcher.get_matching_blocks() if run.size > 1 or (run.size == 1 and _telling(a[run.a]))]
    return Overlap(
        _pieces(a, [(run.a, run.size) for run in runs]),
        _pieces(b, [(run.b, run.size) for run in runs]),
        max((run.size for run in runs), default=0),
    )


def _plain(word: str) -> str:
    return word.casefold().strip(_EDGES) or word


def _telling(word: str) -> bool:
    return "@" in word or any(character.isdigit() for character in word)


def _pieces(words: list[str], runs: list[tuple[int, int]]) -> tuple[Piece, ...]:
    pieces, done = [], 0
    for start, size in runs:
        pieces += [Piece(" ".join(words[done:start]), False), Piece(" ".join(words[start : start + size]), True)]
        done = start + size
    pieces.append(Piece(" ".join(words[done:]), False))
    return tuple(piece for piece in pieces if piece.text)
