"""How missing texts are cut into chunks, the unit that a worker embeds and that the cache stores. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.ports import Encoder

CHUNK_COST = 32_768
"""Characters of a chunk: a few seconds of one core, which is what an interruption may lose."""

_COST_OF_A_TEXT = 8

EmbedChunks = Callable[[Sequence[Sequence[str]]], Iterator[tuple[int, NDArray[np.float32]]]]
"""Takes chunks of texts; yields (index of the chunk, (n, d) unit vectors), every chunk once, in any order.

Any number of workers gives the same bits, because an encoder's rows do not depend on what is embedded beside them.
"""


def plan_chunks(texts: Sequence[str], cost: int = CHUNK_COST) -> list[list[int]]:
    """Indices of ``texts`` in chunks of about ``cost`` characters, every text in one chunk.

    Texts of similar length go together, which fills the encoder's batches. Longest first: the last chunks are the cheap
    ones, so that several workers finish together. The chunks depend on the texts, not on their order.
    """
    chunks: list[list[int]] = []
    room = 0
    for index in sorted(range(len(texts)), key=lambda index: (-len(texts[index]), texts[index])):
        needed = len(texts[index]) + _COST_OF_A_TEXT
        if needed > room or not chunks:
            chunks.append([])
            room = max(cost, needed)
        chunks[-1].append(index)
        room -= needed
    return chunks


def in_this_process(encoder: Encoder) -> EmbedChunks:
    """Embeds one chunk after the other, here."""

    def embed(chunks: Sequence[Sequence[str]]) -> Iterator[tuple[int, NDArray[np.float32]]]:
        for index, chunk in enumerate(chunks):
            yield index, encoder.encode(chunk)

    return embed
