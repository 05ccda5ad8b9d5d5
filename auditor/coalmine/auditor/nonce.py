"""High-entropy strings: the records of a synthetic canary and the probes that attract it (paper, appendix B).

They are fresh random strings, not hashes of anything private, and the pool is drawn independently of the records.
"""

from __future__ import annotations

import numpy as np

from coalmine.protocol.randomness import Purpose, stream

_ALPHABET = np.array(list("abcdefghijklmnopqrstuvwxyz0123456789"))
_LENGTH = 128
"""Long enough that short gibberish, which people do write in chats, is not drawn to a nonce: on 12,000 chat messages 64
nonces of 16, 64 and 128 characters collected 217, 163 and 7 votes per 1000 messages."""


def nonce_user(seed: int, canary: int, records: int) -> tuple[str, ...]:
    """The records of one synthetic canary: strings of 661 bits of entropy each."""
    return _strings(stream(seed, Purpose.NONCE_USER, user=str(canary)), records)


def nonce_pool(seed: int, canary: int, size: int) -> tuple[str, ...]:
    """Probe candidates for one synthetic canary, independent of its records."""
    return _strings(stream(seed, Purpose.NONCE_POOL, user=str(canary)), size)


def _strings(rng: np.random.Generator, count: int) -> tuple[str, ...]:
    return tuple("".join(_ALPHABET[row]) for row in rng.integers(len(_ALPHABET), size=(count, _LENGTH)))
