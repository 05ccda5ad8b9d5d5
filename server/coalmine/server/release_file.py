"""Releases on disk: Parquet with the noisy histogram, and in its metadata what a reader must know about it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from coalmine.protocol.bank import Commitment
from coalmine.protocol.errors import StorageError
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.release import Release

_KEY = b"coalmine.release"


def write_release(release: Release, path: Path) -> None:
    """Write a release, whole or not at all.

    Raises:
        StorageError: the file cannot be written.
    """
    about = {
        "round": release.round,
        "commitment": asdict(release.commitment),
        "randomness": release.randomness,
        "mechanism": asdict(release.mechanism),
    }
    table = pa.table({"histogram": pa.array(release.histogram)}).replace_schema_metadata({_KEY: json.dumps(about)})
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            pq.write_table(table, part)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"the release cannot be written: {error.strerror or error}", where=str(path)) from None


def read_release(path: Path) -> Release:
    """Read a release.

    Raises:
        StorageError: missing, or not what ``write_release`` wrote.
    """
    try:
        table = pq.read_table(path)
        about = json.loads((table.schema.metadata or {})[_KEY])
        return Release(
            about["round"],
            np.asarray(table.column("histogram").to_numpy(), np.float64),
            Commitment(**about["commitment"]),
            Mechanism(**about["mechanism"]),
            about["randomness"],
        )
    except (OSError, pa.ArrowException, LookupError, TypeError, ValueError) as error:
        raise StorageError("this is not a release", where=str(path), remedy="start the study anew") from error
