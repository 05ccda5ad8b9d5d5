"""An encoder that remembers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from coalmine.clients.encoder.cache import EmbeddingCache, text_key
from coalmine.clients.encoder.chunks import CHUNK_COST, EmbedChunks, in_this_process, plan_chunks
from coalmine.protocol.errors import ModelError
from coalmine.protocol.ports import Advance, Encoder

_CHUNKS_AT_LEAST = 8
_SMALLEST_CHUNK = 2048
"""Characters; smaller chunks would cost more in hand-over than they gain."""


class Progress(Protocol):
    """How an encoder tells what it is doing: opened once with the number of missing texts, then advanced by texts."""

    def __call__(self, what: str, missing: int) -> AbstractContextManager[Advance]: ...


@contextmanager
def silent(what: str, missing: int) -> Iterator[Advance]:
    """Progress that nobody watches."""
    yield lambda done: None


class CachedEncoder:
    """Looks up, embeds each missing text once, stores every chunk as it comes: an interruption loses little.

    Args:
        inner: the encoder that embeds.
        cache: where embeddings are kept.
        progress: opened only when something is missing.
        embed: embeds the chunks, e.g. in worker processes that hold the same encoder; default: ``inner``, here.
        chunk_cost: characters of a chunk, less where little is missing.
    """

    def __init__(
        self,
        inner: Encoder,
        cache: EmbeddingCache,
        progress: Progress | None = None,
        *,
        embed: EmbedChunks | None = None,
        chunk_cost: int = CHUNK_COST,
    ) -> None:
        self._inner = inner
        self._cache = cache
        self._progress = progress or silent
        self._embed = embed or in_this_process(inner)
        self._chunk_cost = chunk_cost

    @property
    def id(self) -> str:
        return self._inner.id

    @property
    def dimension(self) -> int:
        return self._inner.dimension

    def encode(self, texts: Sequence[str], *, what: str = "texts") -> NDArray[np.float32]:
        """(n, d) unit vectors; see `coalmine.protocol.ports.Encoder`.

        Raises:
            ModelError: an embedding is not finite or has another dimension than the cached ones.
            StorageError: the cache is damaged, or cannot be read or written.
        """
        place: dict[str, int] = {}
        inverse = np.array([place.setdefault(text, len(place)) for text in texts], dtype=np.intp)
        distinct = list(place)
        keys = [text_key(text) for text in distinct]
        vectors = np.empty((len(distinct), self.dimension), dtype=np.float32)

        shelf = self._cache.shelf(self._inner)
        found, known = shelf.get(keys)
        vectors[found] = known
        missing = np.setdiff1d(np.arange(len(distinct)), found, assume_unique=True)
        if len(missing):
            chunks = [missing[part] for part in self._chunks([distinct[i] for i in missing])]
            with self._progress(what, len(missing)) as advance:
                for chunk, rows in self._embedded([[distinct[i] for i in chunk] for chunk in chunks]):
                    shelf.put([keys[i] for i in chunks[chunk]], rows)
                    vectors[chunks[chunk]] = rows
                    advance(len(rows))
        return vectors[inverse]

    def _chunks(self, texts: Sequence[str]) -> list[list[int]]:
        """Chunks small enough that several workers have something to do."""
        share = sum(map(len, texts)) // _CHUNKS_AT_LEAST
        return plan_chunks(texts, min(self._chunk_cost, max(_SMALLEST_CHUNK, share)))

    def _embedded(self, chunks: Sequence[Sequence[str]]) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Every chunk once, finite and of the right shape, whoever embeds them."""
        waiting = set(range(len(chunks)))
        for index, rows in self._embed(chunks):
            if index not in waiting:
                raise ModelError(f"chunk {index} of {len(chunks)} came twice or was never asked for", where=self.id)
            waiting.remove(index)
            if rows.shape != (len(chunks[index]), self.dimension):
                raise ModelError(
                    f"{len(chunks[index])} texts gave embeddings of shape {rows.shape}",
                    where=self.id,
                    remedy=f"needs ({len(chunks[index])}, {self.dimension})",
                )
            if not np.isfinite(rows).all():
                raise ModelError("an embedding is not finite", where=self.id, remedy="check the model's weights")
            yield index, rows
        if waiting:
            raise ModelError(f"{len(waiting)} of {len(chunks)} chunks were not embedded", where=self.id)
