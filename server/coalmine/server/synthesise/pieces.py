"""A vocabulary of word pieces made from public text.

Made from the training split it would tell rare words of it, names among them, to whoever sees it or the texts made
with it, and no noise in the gradients would help. The 256 bytes are always in it, so that nothing is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_BYTES = 256


class Pieces(Protocol):
    """How a language model reads and writes."""

    @property
    def size(self) -> int:
        """Pieces in all, ``begin`` and ``end`` included."""
        ...

    @property
    def begin(self) -> int: ...

    @property
    def end(self) -> int: ...

    def encode(self, text: str) -> list[int]:
        """Pieces of a text, never ``begin`` or ``end``, whatever the text says."""
        ...

    def decode(self, pieces: Sequence[int]) -> str: ...


class BytePairs:
    """Byte pairs merged by frequency; ``begin`` and ``end`` are numbers that no text encodes to."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._merged: int = tokenizer.get_vocab_size()

    @property
    def size(self) -> int:
        return self._merged + 2

    @property
    def begin(self) -> int:
        return self._merged

    @property
    def end(self) -> int:
        return self._merged + 1

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text).ids)

    def decode(self, pieces: Sequence[int]) -> str:
        return str(self._tokenizer.decode([piece for piece in pieces if piece < self._merged]))


def byte_pairs(public: Iterable[str], size: int) -> BytePairs:
    """Learn at most ``size`` pieces (``begin`` and ``end`` besides) from public texts; the same from the same texts.

    Args:
        size: at least 256.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=max(size, _BYTES),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=[],
        show_progress=False,
    )
    tokenizer.train_from_iterator(public, trainer)
    return BytePairs(tokenizer)
