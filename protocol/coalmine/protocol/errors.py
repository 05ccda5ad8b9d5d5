"""Everything that can go wrong and that a person can act on.

    CoalmineError
    ├── InputError              the user can mend it; the command line ends with code 2
    │   ├── StudyError          a study file, an override or a command-line value
    │   ├── DataError           records, columns, users, splits
    │   ├── BankError           a candidate bank or a probe pool
    │   ├── ModelError          an encoder or a generator that cannot be used as asked
    │   └── StorageError        disk full, no permission, a damaged cache
    ├── Interrupted             somebody stopped it
    ├── ProtocolError           a party refuses to go on
    │   ├── CommitmentMismatch  the bank is not the one that was committed
    │   ├── ContributionError   a part of a round is missing, unknown or does not fit
    │   └── RoundAborted        too few participants survived, and nobody is trusted to add their noise
    └── GeneratorError          a generator answered, but not with what was needed

Messages say what was wrong, where, and what would be right. They never hold private text, votes or cohort facts.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class CoalmineError(Exception):
    """An error with its place and its remedy.

    Args:
        what: what was wrong, in one sentence.
        where: file, line, key or user concerned.
        remedy: what would be right.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str | None = None, remedy: str | None = None) -> None:
        super().__init__(what, where, remedy)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.what, self.where, self.remedy))

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text} ({self.remedy})" if self.remedy else text


def _rebuild(kind: type[CoalmineError], what: str, where: str | None, remedy: str | None) -> CoalmineError:
    return kind(what, where=where, remedy=remedy)


class InputError(CoalmineError):
    """The user can mend it."""

    exit_code = 2


class StudyError(InputError):
    """A study file, an override or a command-line value."""


class DataError(InputError):
    """Records, columns, users or splits."""


class BankError(InputError):
    """A candidate bank or a probe pool."""


class ModelError(InputError):
    """An encoder or a generator that cannot be used as asked."""


class StorageError(InputError):
    """Disk full, no permission, a damaged cache."""


class ProtocolError(CoalmineError):
    """A party refuses to go on."""

    exit_code = 2


class CommitmentMismatch(ProtocolError):
    """The bank is not the one that was committed; clients refuse to vote."""


class ContributionError(ProtocolError):
    """A part of a round is missing, unknown or does not fit."""


class RoundAborted(ProtocolError):
    """Too few participants survived, and nobody is trusted to add the noise that is missing. This is a disclosure."""


class GeneratorError(CoalmineError):
    """A generator answered, but not with what was needed."""

    exit_code = 2


class Interrupted(CoalmineError):
    """Somebody stopped it."""

    exit_code = 130


def nearest(word: str, known: Iterable[str]) -> str:
    """The remedy for a misspelt word: the nearest known one first, then all of them."""
    choices = sorted(map(str, known))
    close = difflib.get_close_matches(word, choices, n=1)
    listed = "known: " + ", ".join(choices) if choices else "nothing is known here"
    return f"did you mean {close[0]!r}? {listed}" if close else listed
