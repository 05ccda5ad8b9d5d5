"""One door to every source of users."""

from __future__ import annotations

from typing import assert_never

from coalmine.clients.data.files import FileSource, examine_file, read_file
from coalmine.clients.data.huggingface import HuggingFaceSource, examine_huggingface, read_huggingface
from coalmine.clients.data.personas import PersonasSource, write_personas
from coalmine.clients.data.rows import Reading
from coalmine.clients.data.sotu import SotuSource, read_sotu
from coalmine.clients.data.users import UserTable

DataSource = FileSource | SotuSource | PersonasSource | HuggingFaceSource


def load(source: DataSource) -> UserTable:
    """The users of a source, ready to use.

    Raises:
        DataError: anything about the source that does not fit, with its place.
    """
    match source:
        case FileSource():
            return read_file(source)
        case SotuSource():
            return read_sotu(source)
        case PersonasSource():
            return write_personas(source)
        case HuggingFaceSource():
            return read_huggingface(source)
        case _:
            assert_never(source)


def examine(source: DataSource) -> Reading:
    """The users that can be read and every flaw, for ``describe``.

    Raises:
        DataError: nothing can be read.
    """
    match source:
        case FileSource():
            return examine_file(source)
        case HuggingFaceSource():
            return examine_huggingface(source)
        case _:
            return Reading(load(source))
