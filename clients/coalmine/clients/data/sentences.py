"""Splits English prose into sentences: deterministic, a handful of rules, no model."""

from __future__ import annotations

import re

MIN_WORDS = 4

_TITLES_AND_THE_LIKE = re.compile(
    r"(?i)^(?:mr|mrs|ms|dr|messrs|gen|brig|col|capt|lt|maj|sgt|adm|hon|rev|gov|sen|rep|prof|st|mt|ft|jr|sr|ch|pp|par"
    r"|viz|cf|vs|inc|co|corp|dept|jan|feb|mar|apr|jun|jul|aug|sept|oct|nov|dec|[a-hj-z])$"
)
_NUMBERED = re.compile(r"(?i)^(?:nos?|arts?|secs?|vol|fig)$")
# "U.S." ends a sentence as often as not; the word that follows decides.
_DOTTED = re.compile(r"^(?:[A-Za-z]\.)+[A-Za-z]$")
_OPENING = re.compile(
    r"(?i)^(?:an?|and|as|at|but|by|congress|each|every|for|he|here|his|i|if|in|it|let|many|my|no|not|now|of|on|one|our"
    r"|she|so|some|such|that|the|their|then|there|these|they|this|those|to|we|what|when|while|with|you|your)$"
)
_NOTE = re.compile(r"\[[^\[\]\n]*\]")
_END = re.compile(r"[.!?]+[\"'”’)]*\s+(?=[\"'“‘(]*[A-Z0-9$])")
_NEXT_WORD = re.compile(r"[A-Za-z0-9]+")
_WORD = re.compile(r"\S*[A-Za-z0-9]\S*")


def sentences(text: str, min_words: int = MIN_WORDS) -> list[str]:
    """The sentences of ``text`` in order, white space collapsed, fragments under ``min_words`` words dropped.

    A line break ends a sentence. Bracketed notes ("[Applause]") are removed. A full stop does not end a sentence after
    a title or another abbreviation ("Mr.", "No. 5"), after an initial ("John Q. Adams"), inside a number, after a
    number that opens the sentence ("1. The ..."), before a small letter, nor after "U.S." unless a common opening word
    follows.
    """
    found = (" ".join(piece.split()) for line in _NOTE.sub(" ", text).splitlines() for piece in _pieces(line))
    return [sentence for sentence in found if len(_WORD.findall(sentence)) >= min_words]


def _pieces(line: str) -> list[str]:
    pieces, start = [], 0
    for end in _END.finditer(line):
        if _ends(line[start : end.start()], end.group(), line[end.end() :]):
            pieces.append(line[start : end.end()])
            start = end.end()
    return [*pieces, line[start:]]


def _ends(before: str, mark: str, after: str) -> bool:
    """Whether a mark between ``before`` and ``after`` ends a sentence."""
    if not mark.startswith(".") or mark.startswith(".."):
        return True
    words = before.split()
    last = words[-1].strip("\"'“‘(") if words else ""
    following = _NEXT_WORD.search(after)
    next_word = following.group() if following else ""
    if _DOTTED.match(last):
        return _OPENING.match(next_word) is not None
    if _NUMBERED.match(last):
        return not next_word[:1].isdigit()
    opens_a_list = len(words) == 1 and last.isdigit()
    return not (opens_a_list or _TITLES_AND_THE_LIKE.match(last))
