"""Data sets of the Hugging Face kind, read by the optional ``datasets``: a saved folder or a name on the hub."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from coalmine.clients.data.columnar import arrow_rows, fitting
from coalmine.clients.data.rows import Columns, OnBadRecord, Reading, accept, gather
from coalmine.clients.data.users import UserTable
from coalmine.protocol.errors import DataError, nearest

if TYPE_CHECKING:
    import datasets

_BATCH_ROWS = 65_536


@dataclass(frozen=True)
class HuggingFaceSource:
    """A data set by name.

    Attributes:
        name: a folder written by ``save_to_disk``, or a name on the hub, which is downloaded unless it is in the
            library's cache: the only place where Coalmine asks for data from outside, and only because it is named.
        split: e.g. "train".
        configuration: the data set's variant, where it has several.
        on_bad_record: what a blank or non-text record means: "error", or "drop" it and count.
    """

    name: str
    split: str = "train"
    configuration: str | None = None
    columns: Columns = field(default_factory=Columns)
    on_bad_record: OnBadRecord = "error"


def read_huggingface(source: HuggingFaceSource) -> UserTable:
    """The users of a data set.

    Raises:
        DataError: the library is not installed, there is no such data set or split, a column is missing, or rows cannot
            be used.
    """
    return accept(examine_huggingface(source), source.on_bad_record)


def examine_huggingface(source: HuggingFaceSource) -> Reading:
    """All users that can be read, and every flaw.

    Raises:
        DataError: nothing can be read.
    """
    data = _open(source)
    where = f"{source.name} ({source.split})"
    columns = fitting(data.features.arrow_schema, source.columns, where)
    classes = getattr(data.features[columns.label], "names", None) if columns.label is not None else None
    batches = data.with_format("arrow").iter(_BATCH_ROWS)
    return gather(arrow_rows(batches, columns, classes), where)


def _open(source: HuggingFaceSource) -> datasets.Dataset:
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    try:
        import datasets
    except ImportError:
        raise DataError(
            "reading Hugging Face data sets needs the library datasets",
            where=source.name,
            remedy="pip install coalmine[huggingface]",
        ) from None
    folder = Path(source.name)
    try:
        if not folder.is_dir():
            return datasets.load_dataset(source.name, name=source.configuration, split=source.split)
        saved = datasets.load_from_disk(folder)
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        first_line = str(error).partition("\n")[0]
        raise DataError(
            f"the data set cannot be had: {first_line}",
            where=source.name,
            remedy="check its name, its split and, for a name on the hub, the connection",
        ) from error
    if isinstance(saved, datasets.Dataset):
        return saved
    if source.split not in saved:
        raise DataError(f"there is no split {source.split!r}", where=source.name, remedy=nearest(source.split, saved))
    return saved[source.split]
