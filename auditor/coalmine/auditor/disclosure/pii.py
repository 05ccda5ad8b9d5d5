"""Personal details of private users that turn up in the synthetic output (arXiv 2606.16952, section 3).

A detail is its text, whatever kind it was taken for: one name may be a person here and an organisation there. Letter
case, white space, punctuation around it and the separators within a number do not tell details apart.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from coalmine.auditor.disclosure.counted import count_holders, first_synthetic
from coalmine.auditor.disclosure.feature_class import Matches, Material
from coalmine.auditor.disclosure.pii_detector import Detail, PresidioDetector

_PIECE = 20_000
_RUN = re.compile(r"\S{1000}")
_CHUNK_TEXTS, _CHUNK_CHARACTERS = 512, 1_000_000
_REMEMBERED = 500_000
_EDGES = " .,;:!?\"'`()[]{}<>«»“”‘’*_-–—/\\|#"
_NUMBERS = {"CREDIT_CARD", "PHONE_NUMBER", "UK_NHS", "US_BANK_NUMBER", "US_ITIN", "US_SSN"}
_HEAD = 4


class Detector(Protocol):
    """Finds personal details in texts."""

    @property
    def notes(self) -> tuple[str, ...]: ...

    def detect(self, texts: Sequence[str]) -> list[tuple[Detail, ...]]:
        """The details of each text, which depend on that text alone."""
        ...


class Pii:
    """A `DiscreteClass`: the personal details that a detector finds.

    The detector reads every synthetic text but only those private texts that have the characters of some detail of the
    synthetic output: it could find none of them in the others. Equal texts are read once, also by later audits with the
    same object (the rounds of a study); half a million results are remembered, under digests of the texts.

    Texts are cut into pieces of 20,000 characters at white space, and unbroken runs of characters after 1,000: a detail
    across a cut is missed.

    Args:
        detector: ``None`` for presidio.

    Raises:
        ModelError: presidio is not installed.
    """

    def __init__(self, detector: Detector | None = None, name: str = "PII") -> None:
        self.name = name
        self._detector = PresidioDetector() if detector is None else detector
        self._remembered: dict[bytes, tuple[str, ...]] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        return self._detector.notes

    def matches(self, material: Material, ks: Sequence[int]) -> list[Matches]:
        """See `DiscreteClass`.

        Raises:
            StudyError: a k below 1, or none.
        """
        known = first_synthetic(self._extract_many(material.synthetic(), None))
        mentions = Mentions(known)
        return count_holders(material, ks, known, lambda texts: self._extract_many(texts, mentions))

    def _extract_many(self, texts: Iterable[str], mentions: Mentions | None) -> Iterator[set[str]]:
        for chunk in _chunks(texts):
            pieces = [
                [piece for piece in _pieces(text) if mentions is None or mentions.possible_in(piece)] for text in chunk
            ]
            details = self._of_pieces(dict.fromkeys(piece for of_text in pieces for piece in of_text))
            yield from ({detail for piece in of_text for detail in details[piece]} for of_text in pieces)

    def _of_pieces(self, pieces: Iterable[str]) -> dict[str, tuple[str, ...]]:
        digests = {piece: _digest(piece) for piece in pieces}
        new = [piece for piece, digest in digests.items() if digest not in self._remembered]
        found = {
            piece: tuple(dict.fromkeys(filter(None, (canonical(piece, detail) for detail in details))))
            for piece, details in zip(new, self._detector.detect(new) if new else [], strict=True)
        }
        for piece, details in found.items():
            if len(self._remembered) < _REMEMBERED:
                self._remembered[digests[piece]] = details
        return {piece: found[piece] if piece in found else self._remembered[digests[piece]] for piece in digests}


def canonical(text: str, detail: Detail) -> str:
    """The detail as it is compared; empty where nothing is left of it but a character."""
    part = text[detail.start : detail.end]
    if detail.kind in _NUMBERS:
        return _digits(part)
    kept = _spaced(part).strip(_EDGES)
    for ending in ("'s", "’s"):
        kept = kept.removesuffix(ending)
    return kept if len(kept) > 1 else ""


class Mentions:
    """Tells fast whether a text can hold one of some canonical details.

    The canonical form of a part of a text is a part of the text's folded form, or of its digits.
    """

    def __init__(self, details: Iterable[str]) -> None:
        self._by_head: dict[str, list[str]] = {}
        for detail in details:
            self._by_head.setdefault(detail[:_HEAD], []).append(detail)
        self._heads = frozenset(self._by_head)
        self._lengths = sorted({len(head) for head in self._heads})

    def possible_in(self, text: str) -> bool:
        """False only where no part of ``text`` has one of the details as its canonical form."""
        return any(self._in_view(view) for view in (_spaced(text), _digits(text)))

    def _in_view(self, view: str) -> bool:
        for length in self._lengths:
            starts = {view[i : i + length] for i in range(len(view) - length + 1)}
            if any(detail in view for head in starts & self._heads for detail in self._by_head[head]):
                return True
        return False


def _spaced(text: str) -> str:
    return " ".join(text.split()).casefold()


def _digits(text: str) -> str:
    return "".join(filter(str.isdecimal, text))


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    characters = 0
    for text in texts:
        chunk.append(text)
        characters += len(text)
        if len(chunk) == _CHUNK_TEXTS or characters >= _CHUNK_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def _pieces(text: str) -> list[str]:
    whole = _RUN.sub(r"\g<0> ", text)
    pieces, start = [], 0
    while start < len(whole):
        end = start + _PIECE
        if end < len(whole):
            end = max(whole.rfind(" ", start, end), whole.rfind("\n", start, end)) + 1 or end
        pieces.append(whole[start:end])
        start = end
    return [piece for piece in pieces if not piece.isspace()]
