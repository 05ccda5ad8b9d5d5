"""Whole files or none."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coalmine.protocol.errors import StorageError


def write_bytes(path: Path, data: bytes, mode: int = 0o644) -> Path:
    """Write next to ``path``, then move into place with the permissions ``mode``.

    Raises:
        StorageError: no space, no permission, no such folder.
    """
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(temporary).chmod(mode)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        remedy = "choose a folder with space that can be written"
        raise StorageError(error.strerror or "cannot be written", where=str(path), remedy=remedy) from error
    return path


def write_text(path: Path, text: str) -> Path:
    """:func:`write_bytes` of UTF-8.

    Raises:
        StorageError: no space, no permission, no such folder.
    """
    return write_bytes(path, text.encode())


def write_json(path: Path, document: Mapping[str, Any]) -> Path:
    """:func:`write_text` of :func:`json_text`.

    Raises:
        StorageError: no space, no permission, no such folder.
    """
    return write_text(path, json_text(document))


def json_text(document: Mapping[str, Any]) -> str:
    """Strict JSON, as every result is written.

    Raises:
        ValueError: a number that is not finite.
    """
    return json.dumps(document, allow_nan=False, ensure_ascii=False, indent=1) + "\n"
