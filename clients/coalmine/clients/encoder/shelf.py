"""One SQLite file of cached embeddings: one encoder on one machine, any number of reading and writing processes.

A file appears complete or not at all, and every write is one transaction of a write-ahead log: an interruption at any
moment leaves it intact. Connections live for one call: nothing to inherit across a fork, nothing to forget to close.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.errors import ModelError, StorageError

_FORMAT = 1
_WAIT_SECONDS = 60.0
_KEYS_PER_QUERY = 1000

_SCHEMA = (
    # Rows are 1.5 KB: four default pages would hold eight of them, one large page holds ten.
    "PRAGMA page_size = 16384",
    "PRAGMA journal_mode = WAL",
    "CREATE TABLE shelf (format INTEGER NOT NULL, encoder TEXT NOT NULL, dimension INTEGER NOT NULL)",
    "CREATE TABLE vectors (key BLOB NOT NULL UNIQUE, vector BLOB NOT NULL, checksum INTEGER NOT NULL)",
)

_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}


@dataclass(frozen=True)
class Shelf:
    """Embeddings of one encoder, keyed by the digest of their text.

    Attributes:
        path: the file; created with the first `put`.
        encoder: name of the encoder, for messages.
        dimension: d.
    """

    path: Path
    encoder: str
    dimension: int

    def get(self, keys: Sequence[bytes]) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """What is known of distinct ``keys``: (m,) their positions, ascending, and the (m, d) vectors.

        Raises:
            ModelError: the file holds vectors of another dimension.
            StorageError: the file is damaged or cannot be read.
        """
        position = {key: index for index, key in enumerate(keys)}
        found: dict[int, bytes] = {}
        if keys and self._exists():
            with self._connected() as connection:
                for start in range(0, len(keys), _KEYS_PER_QUERY):
                    part = keys[start : start + _KEYS_PER_QUERY]
                    marks = ",".join("?" * len(part))
                    query = f"SELECT key, vector, checksum FROM vectors WHERE key IN ({marks})"
                    for key, vector, checksum in connection.execute(query, part):
                        self._check_row(vector, checksum)
                        found[position[key]] = vector
        positions = sorted(found)
        joined = b"".join(found[index] for index in positions)
        vectors = np.frombuffer(joined, dtype="<f4").astype(np.float32).reshape(len(positions), self.dimension)
        return np.array(positions, dtype=np.intp), vectors

    def put(self, keys: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Adds (n, d) ``vectors``, all or none; a key that is there already keeps its vector.

        Raises:
            ModelError: the vectors, or those in the file, have another dimension.
            StorageError: the file is damaged or cannot be written.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.dimension or len(vectors) != len(keys):
            raise ModelError(
                f"{len(keys)} texts gave embeddings of shape {vectors.shape}",
                where=self.encoder,
                remedy=f"needs ({len(keys)}, {self.dimension})",
            )
        rows = [vector.tobytes() for vector in np.ascontiguousarray(vectors, dtype="<f4")]
        with self._connected(create=True) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                "INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)",
                ((key, row, zlib.crc32(row)) for key, row in zip(keys, rows, strict=True)),
            )
            connection.execute("COMMIT")

    @contextmanager
    def _connected(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        try:
            if create and not self._exists():
                self._create()
            # rw: a file that vanished meanwhile must not come back empty, without its tables.
            uri = f"{self.path.absolute().as_uri()}?mode=rw"
            with closing(sqlite3.connect(uri, uri=True, timeout=_WAIT_SECONDS, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous = NORMAL")
                self._check_kind(connection)
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise self._explained(error) from error

    def _create(self) -> None:
        """Writes an empty shelf beside its place and links it there; whoever links first has created it."""
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=".new-", suffix=".sqlite")
        os.close(handle)
        try:
            with closing(sqlite3.connect(name, isolation_level=None)) as connection:
                for statement in _SCHEMA:
                    connection.execute(statement)
                connection.execute("INSERT INTO shelf VALUES (?, ?, ?)", (_FORMAT, self.encoder, self.dimension))
            with suppress(FileExistsError):
                os.link(name, self.path)
        finally:
            Path(name).unlink()

    def _exists(self) -> bool:
        try:
            return self.path.exists()
        except OSError as error:
            raise self._explained(error) from error

    def _check_kind(self, connection: sqlite3.Connection) -> None:
        row = connection.execute("SELECT format, encoder, dimension FROM shelf").fetchone()
        if row is None or row[0] != _FORMAT:
            raise self._damaged("the embedding cache has an unknown format")
        if row[2] != self.dimension:
            raise ModelError(
                f"the cache holds embeddings of dimension {row[2]}, the encoder gives {self.dimension}",
                where=f"{self.path}, encoder {row[1]}",
                remedy="use the encoder that filled the cache, or remove the file",
            )

    def _check_row(self, vector: object, checksum: object) -> None:
        whole = isinstance(vector, bytes) and len(vector) == 4 * self.dimension and zlib.crc32(vector) == checksum
        if not whole:
            raise self._damaged("a cached embedding is damaged")

    def _damaged(self, what: str) -> StorageError:
        return StorageError(what, where=str(self.path), remedy="remove this file: its embeddings are computed again")

    def _explained(self, error: sqlite3.Error | OSError) -> StorageError:
        """The error a person can act on, told by SQLite's primary result code."""
        where = str(self.path)
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if code in _DAMAGE:
            return self._damaged(f"the embedding cache is damaged ({error})")
        if code == sqlite3.SQLITE_BUSY:
            remedy = "another process holds the file; wait for it or end it"
        elif code == sqlite3.SQLITE_FULL or isinstance(error, OSError):
            remedy = "free disk space, or point COALMINE_CACHE to a folder that can be written"
        else:
            remedy = "check disk space and the permissions of the file and its folder, or set COALMINE_CACHE elsewhere"
        return StorageError(f"the embedding cache cannot be used ({error})", where=where, remedy=remedy)
