"""From records to what a language model is trained on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from coalmine.server.synthesise.corpus import Record
from coalmine.server.synthesise.pieces import Pieces


class Lesson(NamedTuple):
    """Pieces of prompt, text and end; the first ``given`` of them are the prompt, which is not learnt."""

    pieces: list[int]
    given: int


def prompt(label: str, pieces: Pieces) -> list[int]:
    """What the model is asked with: the label, which is public. At most half a dozen pieces longer than the label."""
    return [pieces.begin, *(pieces.encode(f"{label}: ") if label else [])]


def lessons(records: Iterable[Record], pieces: Pieces, context: int) -> list[Lesson]:
    """One lesson per record, cut to ``context`` pieces; a prompt takes at most half of them."""
    made = []
    for record in records:
        given = prompt(record.label, pieces)[: context // 2]
        made.append(Lesson([*given, *pieces.encode(record.text), pieces.end][:context], len(given)))
    return made
