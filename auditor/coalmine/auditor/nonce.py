"""High-entropy strings: the records of a synthetic canary and the probes that attract it (paper, appendix B).

They are fresh random strings, not hashes of anything private, and the pool is drawn independently of the records.
"""

from __future__ import annotations

import numpy as np

from coalmine.protocol.randomness import Purpose, stream

_WORDS, _DIGITS = 4, 24
"""Four words of 24 random digits. Short gibberish, which people do write in chats, is drawn to them less than to other
random strings: on chat messages, 64 nonces collected 38 votes per 1000 messages (6,000 messages), 64 strings of 16
letters and digits 217 (12,000). A word of more than 100 characters would be no nonce at all: MiniLM's tokenizer maps
every such word to one token."""


def nonce_user(seed: int, canary: int, records: int) -> tuple[str, ...]:
    """The records of one synthetic canary: strings of 318 bits of entropy each."""
    return _strings(stream(seed, Purpose.NONCE_USER, user=str(canary)), records)


def nonce_pool(seed: int, canary: int, size: int) -> tuple[str, ...]:
    """Probe candidates for one synthetic canary, independent of its records."""
    return _strings(stream(seed, Purpose.NONCE_POOL, user=str(canary)), size)


def _strings(rng: np.random.Generator, count: int) -> tuple[str, ...]:
    digits = rng.integers(10, size=(count, _WORDS, _DIGITS))
    return tuple(" ".join("".join(map(str, word)) for word in words) for words in digits)
