"""The candidate bank and its commitment.

Every client receives the same ordered bank, recomputes the digest published before the draw, and refuses to vote on a
mismatch.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from coalmine.protocol.errors import BankError, CommitmentMismatch

_ENCODING = b"coalmine bank 1"


@dataclass(frozen=True)
class Bank:
    """Ordered unique candidates.

    Attributes:
        texts: p candidate texts, no two alike.
        labels: p labels, "" where a candidate has none.
        encoder_id: the encoder that defines "nearest" for this bank.

    Raises:
        BankError: empty bank, blank or duplicated text, or labels that do not pair with the texts.
    """

    texts: tuple[str, ...] = field(repr=False)
    labels: tuple[str, ...] = field(repr=False)
    encoder_id: str

    def __post_init__(self) -> None:
        if not self.texts:
            raise BankError("the bank is empty", remedy="a bank needs at least one candidate")
        if len(self.labels) != len(self.texts):
            raise BankError(f"{len(self.texts)} texts but {len(self.labels)} labels", remedy="one label per text")
        first: dict[str, int] = {}
        for index, text in enumerate(self.texts):
            if _not_unicode(text):
                raise BankError("a candidate is not valid Unicode", where=f"candidate {index}", remedy="remove it")
            if not text.strip():
                raise BankError("a candidate is blank", where=f"candidate {index}", remedy="remove it")
            if text in first:
                raise BankError(
                    f"the text of candidate {first[text]} occurs again",
                    where=f"candidate {index}",
                    remedy="every candidate text must be unique",
                )
            first[text] = index

    def __len__(self) -> int:
        return len(self.texts)

    def replace(self, probes: Mapping[int, str]) -> Bank:
        """The same bank with probe texts at the given positions (labels of the replaced candidates are kept).

        Raises:
            BankError: a position outside the bank, or a probe whose text stands in the bank already.
        """
        outside = [position for position in probes if not 0 <= position < len(self)]
        if outside:
            raise BankError(f"position {outside[0]} lies outside a bank of {len(self)}", remedy="positions from 0")
        texts = tuple(probes.get(index, text) for index, text in enumerate(self.texts))
        return Bank(texts, self.labels, self.encoder_id)


@dataclass(frozen=True)
class Commitment:
    """SHA-256 over the canonical encoding of one round's bank, published before the cohort is drawn."""

    digest: str
    size: int


def commit(bank: Bank) -> Commitment:
    """The commitment to a bank: order, texts, labels and encoder are all bound."""
    digest = hashlib.sha256(_ENCODING)
    for part in _canonical(bank):
        digest.update(part)
    return Commitment(digest.hexdigest(), len(bank))


def verify(bank: Bank, commitment: Commitment) -> None:
    """Recompute the digest.

    Raises:
        CommitmentMismatch: the bank is not the committed one.
    """
    if commit(bank) != commitment:
        raise CommitmentMismatch(
            "the bank is not the one that was committed, so clients refuse to vote",
            where=f"commitment {commitment.digest[:12]}",
            remedy="commit to the bank that is sent, before the cohort is drawn",
        )


def _not_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _canonical(bank: Bank) -> Iterator[bytes]:
    """Length-prefixed UTF-8, so that no two banks share an encoding."""
    for part in (bank.encoder_id, str(len(bank)), *bank.texts, *bank.labels):
        data = part.encode()
        yield struct.pack("<Q", len(data))
        yield data
