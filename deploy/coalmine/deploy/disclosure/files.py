"""Three files as the material of a disclosure audit: checked once, then streamed as often as a class asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.disclosure.feature_class import Entry
from coalmine.clients.data.files import FileSource
from coalmine.clients.data.names import column_names
from coalmine.clients.data.rows import Columns
from coalmine.clients.data.stream import Survey, records, survey
from coalmine.protocol.errors import DataError
from coalmine.protocol.ports import Advance

Progress = Callable[[str, int], AbstractContextManager[Advance]]
"""Opens a display of so many records of something."""

_EVERY = 512
_YES, _NO = ("1", "true", "yes"), ("", "0", "false", "no")
_DEFAULT_USER = "user"


@dataclass(frozen=True)
class ThreeFiles:
    """Where the records are.

    Attributes:
        user: column of user ids. ``None``: a column "user" if train and holdout have one; else every row is a user.
        text: column of texts. canary: column that says which users are inserted canaries.
    """

    train: Path
    holdout: Path
    synthetic: Path
    user: str | None = None
    text: str = "text"
    canary: str | None = None


@dataclass(frozen=True)
class FileMaterial:
    """A `Material`: users of train first, then those of holdout.

    Attributes:
        canaries: (n,) inserted canary users, ``None`` without such a column.
        warnings: what a reader must know about the files.
        user: column that says whose a record is, ``None`` where every row is a user of its own.
    """

    surveys: tuple[Survey, Survey, Survey] = field(repr=False)
    train: NDArray[np.bool_]
    canaries: NDArray[np.bool_] | None
    warnings: tuple[str, ...]
    user: str | None
    progress: Progress = field(repr=False)

    @property
    def records(self) -> int:
        """Private records."""
        return self.surveys[0].records + self.surveys[1].records

    @property
    def synthetic_records(self) -> int:
        return self.surveys[2].records

    def private(self) -> Iterator[Entry]:
        """All private records, with a bar that follows them."""
        inside, outside, _ = self.surveys
        with self.progress("private records", self.records) as advance:
            for first, seen in ((0, inside), (inside.user_count, outside)):
                for count, (user, text) in enumerate(records(seen), start=1):
                    yield Entry(first + user, text)
                    if count % _EVERY == 0:
                        advance(_EVERY)

    def synthetic(self) -> Iterator[str]:
        """All synthetic records, likewise."""
        with self.progress("synthetic records", self.synthetic_records) as advance:
            for count, record in enumerate(records(self.surveys[2]), start=1):
                yield record.text
                if count % _EVERY == 0:
                    advance(_EVERY)


def open_files(files: ThreeFiles, progress: Progress) -> FileMaterial:
    """Read every file once: columns, faulty rows, users, duplicates.

    Raises:
        DataError: a file or a column that cannot be used, rows that cannot be used, users in both splits, an empty
            file, a column of canaries with other values than yes and no.
    """
    user = _user_column(files, progress)
    private = Columns(user, files.text, files.canary)
    surveys = tuple(
        _survey(FileSource(path, columns), progress)
        for path, columns in (
            (files.train, private),
            (files.holdout, private),
            (files.synthetic, Columns(None, files.text, None)),
        )
    )
    inside, outside, output = surveys
    _check_apart(inside, outside)
    train = np.arange(inside.user_count + outside.user_count) < inside.user_count
    return FileMaterial(
        (inside, outside, output),
        train,
        None if files.canary is None else np.array(_flags(inside, files.canary) + _flags(outside, files.canary)),
        tuple(_warnings(inside, outside, output, user)),
        user,
        progress,
    )


def _user_column(files: ThreeFiles, progress: Progress) -> str | None:
    """The column that was named, or else the default one where both files have it.

    Raises:
        DataError: only one of them has it: whose its records are decides what is protected. Before that, whatever else
            is wrong with the other.
    """
    if files.user is not None:
        return files.user
    named = {path: _DEFAULT_USER in column_names(path) for path in (files.train, files.holdout)}
    if any(named.values()) and not all(named.values()):
        without = next(path for path, has in named.items() if not has)
        # A file that cannot be read has no column either, and its reader says why.
        _survey(FileSource(without, Columns(None, files.text, files.canary)), progress)
        raise DataError(
            f"there is no column {_DEFAULT_USER!r}, which the other split has",
            where=str(without),
            remedy="give both files the same column and name it with --user",
        )
    return _DEFAULT_USER if all(named.values()) else None


def _survey(source: FileSource, progress: Progress) -> Survey:
    with progress(f"check {source.path.name}", 0) as advance:
        return survey(source, advance)


def _check_apart(inside: Survey, outside: Survey) -> None:
    both = inside.users.keys() & outside.users.keys()
    if both:
        raise DataError(
            f"{len(both):,} users are in both splits, of {inside.user_count:,} in train and "
            f"{outside.user_count:,} in holdout",
            where=f"{inside.source.path.name}, {outside.source.path.name}",
            remedy="every user belongs to one split; without user ids, leave --user out",
        )


def _warnings(inside: Survey, outside: Survey, output: Survey, user: str | None) -> Iterator[str]:
    if user is None:
        yield (
            f"There is no column {_DEFAULT_USER!r} and none was named with --user: every row counts as a user of its "
            "own, and every bound is about one row."
        )
    copies = len(np.intersect1d(inside.digests, outside.digests))
    if copies:
        held = int(np.isin(outside.digests, inside.digests).sum())
        yield (
            f"{copies:,} texts are in train and in holdout alike ({held:,} of {outside.records:,} held-out records): "
            "what they say is not rare, and hides leakage."
        )
    same = int(np.isin(output.digests, inside.digests).sum())
    if same:
        yield f"{same:,} of {output.records:,} synthetic records equal a training record, character by character."
    held_out = int(np.isin(output.digests, np.setdiff1d(outside.digests, inside.digests)).sum())
    if held_out:
        swapped = " Are train and holdout swapped?" if held_out > same else ""
        yield (
            f"{held_out:,} of {output.records:,} synthetic records equal a held-out record, character by character, "
            f"which the generator should never have seen.{swapped}"
        )


def _flags(seen: Survey, column: str) -> list[bool]:
    words = [label.strip().casefold() for label in seen.labels]
    odd = sum(word not in _YES + _NO for word in words)
    if odd:
        raise DataError(
            f"{odd:,} users have a value that is neither yes nor no",
            where=f"{seen.source.path.name}, column {column!r}",
            remedy="needs one of " + ", ".join((*_YES, *filter(None, _NO))),
        )
    return [word in _YES for word in words]
