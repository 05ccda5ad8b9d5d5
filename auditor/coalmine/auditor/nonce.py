"""High-entropy strings: the records of a synthetic canary and the probes that attract it (paper, appendix B).

They are fresh random strings, not hashes of anything private, and the pool is drawn independently of the records.
"""

from __future__ import annotations

import numpy as np

from coalmine.protocol.errors import BankError
from coalmine.protocol.randomness import Purpose, stream

_WORDS, _DIGITS = 4, 24
"""Four words of 24 random digits. Short gibberish, which people do write in chats, is drawn to them less than to other
random strings: on chat messages, 64 nonces collected 38 votes per 1000 messages (6,000 messages), 64 strings of 16
letters and digits 217 (12,000). A word of more than 100 characters would be no nonce at all: MiniLM's tokenizer maps
every such word to one token."""


_TAIL = 6


def nonce_user(seed: int, canary: int, records: int) -> tuple[str, ...]:
    """The records of one synthetic canary: strings of 318 bits of entropy each."""
    return _strings(stream(seed, Purpose.NONCE_USER, user=str(canary)), records)


def nonce_pool(seed: int, canary: int, size: int) -> tuple[str, ...]:
    """Probe candidates for one synthetic canary, independent of its records."""
    return _strings(stream(seed, Purpose.NONCE_POOL, user=str(canary)), size)


def nonce_family(seed: int, canary: int, size: int) -> tuple[str, ...]:
    """Different strings that differ in their last six digits only, so that an encoder puts them side by side.

    For canaries that need probes of their own: some of the family are records, the others their probes. Measured with
    MiniLM: 60 families of 8 records and 5 probes; all 2400 votes of the records went to their own family's probes.

    Raises:
        BankError: more than a million strings are asked for.
    """
    if size > 10**_TAIL:
        raise BankError(f"a family of {size} nonces", remedy=f"at most {10**_TAIL}")
    rng = stream(seed, Purpose.NONCE_USER, user=f"family {canary}")
    (stem,) = _strings(rng, 1)
    tails = rng.choice(10**_TAIL, size, replace=False)
    return tuple(f"{stem[:-_TAIL]}{tail:0{_TAIL}d}" for tail in tails)


def _strings(rng: np.random.Generator, count: int) -> tuple[str, ...]:
    digits = rng.integers(10, size=(count, _WORDS, _DIGITS))
    return tuple(" ".join("".join(map(str, word)) for word in words) for words in digits)
