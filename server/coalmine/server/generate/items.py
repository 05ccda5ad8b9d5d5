"""One piece of writing, and the generators that write piece by piece.

Every generator here answers each `Item` from that item alone. So a result can be kept on disk by its item and found
again whatever it was once asked together with, and asking for more never changes what was there.
"""

from __future__ import annotations

import hashlib
import struct
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np

from coalmine.protocol.randomness import Purpose, stream

REFUSED = "[refused]"
"""Stands for the answer of a model that declined to write; judged as a refusal, whatever its own words were."""


class Operation(StrEnum):
    """What is to be written."""

    SAMPLE = "sample"
    PARAPHRASE = "paraphrase"
    VARY = "vary"


@dataclass(frozen=True)
class Item:
    """One text to write.

    Attributes:
        operation: what is to be written.
        prompt: the label (sample), the text to reword (paraphrase) or the examples (vary).
        seed: the caller's seed.
        turn: how many equal prompts came earlier in the same call: equal prompts get different texts.
    """

    operation: Operation
    prompt: tuple[str, ...]
    seed: int
    turn: int

    @property
    def key(self) -> str:
        """SHA-256 of operation and prompt in hexadecimal."""
        digest = hashlib.sha256(self.operation.encode())
        for part in self.prompt:
            data = part.encode()
            digest.update(struct.pack("<Q", len(data)))
            digest.update(data)
        return digest.hexdigest()

    def stream(self) -> np.random.Generator:
        """The item's own random stream."""
        return stream(self.seed, Purpose.GENERATOR, self.turn, self.key)


class ItemGenerator(ABC):
    """A `coalmine.protocol.ports.Generator` that writes item by item."""

    @property
    @abstractmethod
    def id(self) -> str:
        """Names implementation, model, weights and prompts: a change in any of them is another generator."""

    @abstractmethod
    def write(self, items: Sequence[Item]) -> Iterator[Mapping[int, str]]:
        """Yields finished texts by index into ``items``, in groups as they get done; every index exactly once."""

    def sample(self, labels: Sequence[str], seed: int) -> list[str]:
        """One text per label, from the label alone."""
        return self._texts(Operation.SAMPLE, [(label,) for label in labels], seed)

    def paraphrase(self, texts: Sequence[str], seed: int) -> list[str]:
        """One rewording per text."""
        return self._texts(Operation.PARAPHRASE, [(text,) for text in texts], seed)

    def vary(self, examples: Sequence[Sequence[str]], seed: int) -> list[str]:
        """One new text per group of examples, in their manner."""
        return self._texts(Operation.VARY, [tuple(group) for group in examples], seed)

    def _texts(self, operation: Operation, prompts: Sequence[tuple[str, ...]], seed: int) -> list[str]:
        seen: Counter[tuple[str, ...]] = Counter()
        items: list[Item] = []
        for prompt in prompts:
            items.append(Item(operation, prompt, seed, seen[prompt]))
            seen[prompt] += 1
        written: dict[int, str] = {}
        for group in self.write(items):
            written.update(group)
        return [written[index] for index in range(len(items))]


def fingerprint(*paths: Path) -> str:
    """12 hexadecimal digits of the SHA-256 over files: rules or prompts that changed are another generator."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
