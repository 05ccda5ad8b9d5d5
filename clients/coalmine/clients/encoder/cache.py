"""The embedding cache: content-addressed, on disk, shared by all studies and processes of one user.

It never holds text, but a digest confirms a guessed text and an embedding of a private text can be partly inverted:
folder and files are for their owner only.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from coalmine.clients.encoder.shelf import Shelf
from coalmine.protocol.errors import StorageError
from coalmine.protocol.ports import Encoder

OWNER_ONLY = 0o700


def text_key(text: str) -> bytes:
    """SHA-256 of a text, 32 bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


@dataclass(frozen=True)
class EmbeddingCache:
    """One file per encoder in ``folder / "embeddings"``. Cheap to build and to send to another process.

    Attributes:
        folder: the cache folder, e.g. `default_cache_folder()`; created when needed.
    """

    folder: Path

    def shelf(self, encoder: Encoder) -> Shelf:
        """Where this encoder's embeddings are kept.

        An encoder may say through an attribute ``machine`` what else its bits depend on (processor, library versions):
        those embeddings are kept apart, so that a warm cache gives the bits that a cold one would.

        Raises:
            StorageError: the folder cannot be created or protected.
        """
        name = "\n".join((encoder.id, getattr(encoder, "machine", "")))
        path = self._protected_folder() / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.sqlite"
        return Shelf(path, encoder.id, encoder.dimension)

    def _protected_folder(self) -> Path:
        folder = self.folder / "embeddings"
        try:
            self.folder.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
            folder.mkdir(mode=OWNER_ONLY, exist_ok=True)
            mode = folder.stat().st_mode
            if mode & 0o077:
                folder.chmod(mode & OWNER_ONLY)
        except OSError as error:
            raise StorageError(
                f"the cache folder cannot be used ({error.strerror})",
                where=str(folder),
                remedy="point COALMINE_CACHE to a folder that can be written",
            ) from error
        return folder
