"""The secret that decides participation in a protected deployment: a file of its own, for its owner's eyes only."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from coalmine.protocol.errors import StorageError
from coalmine.protocol.randomness import Protected

_BYTES = 32


def protected(path: Path) -> Protected:
    """Read the key, or create it from the operating system's entropy where the file is missing.

    Raises:
        StorageError: others may read the file, it has another length, or it cannot be read or written.
    """
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_bytes(_BYTES))
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise StorageError("others may read this secret key", where=str(path), remedy="chmod 600")
        key = path.read_bytes()
    except OSError as error:
        raise StorageError(f"the secret key cannot be used: {error.strerror or error}", where=str(path)) from None
    if len(key) != _BYTES:
        raise StorageError(
            f"a secret key has {_BYTES} bytes, this file {len(key)}", where=str(path), remedy="remove it for a new one"
        )
    return Protected(key)
