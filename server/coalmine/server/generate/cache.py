"""Generated texts kept on disk.

On disk is one SQLite file, readable by its owner only. A row holds the SHA-256 of the request (generator, operation,
prompt, seed, turn) and the text that was generated. Prompts are not stored; but a rewording says much the same as its
prompt, so the file is as private as the texts that were given to `paraphrase` and `vary`.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from coalmine.protocol.errors import StorageError
from coalmine.server.generate.items import Item, ItemGenerator

_SCHEMA = "CREATE TABLE IF NOT EXISTS texts (request BLOB PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID"
_SECONDS_TO_WAIT = 60.0
_LOOKUP = 500


class CachedGenerator(ItemGenerator):
    """Asks the inner generator only for what is not on disk yet, and keeps every group of texts as it is finished.

    Safe for several processes at once: two that miss the same item both generate it, and the first to finish is kept.

    Args:
        inner: the generator that does the work.
        folder: where ``texts.sqlite`` lives; made if missing.

    Raises:
        StorageError: the folder cannot be written, the disk is full, or the file is damaged.
    """

    def __init__(self, inner: ItemGenerator, folder: Path) -> None:
        self.inner = inner
        self.path = folder / "texts.sqlite"

    @property
    def id(self) -> str:
        """That of the inner generator: where a text is kept does not change it."""
        return self.inner.id

    def write(self, items: Sequence[Item]) -> Iterator[Mapping[int, str]]:
        """First what is on disk, then the inner generator's groups as they come."""
        prefix = self.inner.id
        requests = [_request(prefix, item) for item in items]
        with closing(_open(self.path)) as database:
            known = _found(database, self.path, requests)
            if known:
                yield {index: known[request] for index, request in enumerate(requests) if request in known}
            missing = [index for index, request in enumerate(requests) if request not in known]
            if not missing:
                return
            for group in self.inner.write([items[index] for index in missing]):
                placed = {missing[index]: text for index, text in group.items()}
                yield _kept(database, self.path, requests, placed)


def _request(generator_id: str, item: Item) -> bytes:
    digest = hashlib.sha256()
    for part in (generator_id, item.key, str(item.seed), str(item.turn)):
        data = part.encode()
        digest.update(struct.pack("<Q", len(data)))
        digest.update(data)
    return digest.digest()


def _open(path: Path) -> sqlite3.Connection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # SQLite gives its WAL the mode of the database file, which therefore must be right before anything is written.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        path.chmod(0o600)
        database = sqlite3.connect(path, timeout=_SECONDS_TO_WAIT)
    except (OSError, sqlite3.Error) as error:
        raise _storage_error(path, error) from error
    try:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        with database:
            database.execute(_SCHEMA)
    except sqlite3.Error as error:
        database.close()
        raise _storage_error(path, error) from error
    return database


def _found(database: sqlite3.Connection, path: Path, requests: Sequence[bytes]) -> dict[bytes, str]:
    known: dict[bytes, str] = {}
    try:
        for start in range(0, len(requests), _LOOKUP):
            some = requests[start : start + _LOOKUP]
            marks = ",".join("?" * len(some))
            known.update(database.execute(f"SELECT request, text FROM texts WHERE request IN ({marks})", some))
    except sqlite3.Error as error:
        raise _storage_error(path, error) from error
    return known


def _kept(
    database: sqlite3.Connection, path: Path, requests: Sequence[bytes], placed: Mapping[int, str]
) -> Mapping[int, str]:
    """Store a group in one transaction; what another process stored first is what counts from now on."""
    try:
        with database:
            database.executemany(
                "INSERT OR IGNORE INTO texts VALUES (?, ?)", [(requests[index], text) for index, text in placed.items()]
            )
    except sqlite3.Error as error:
        raise _storage_error(path, error) from error
    stored = _found(database, path, [requests[index] for index in placed])
    return {index: stored[requests[index]] for index in placed}


def _storage_error(path: Path, error: Exception) -> StorageError:
    return StorageError(
        f"the cache of generated texts cannot be used ({error})",
        where=str(path),
        remedy="free disk space or mend the permissions; a damaged file may be deleted, its texts are generated again",
    )
