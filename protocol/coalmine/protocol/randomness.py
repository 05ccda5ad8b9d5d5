"""Where randomness comes from. Every stream is a function of (root, purpose, round, user), never of worker order."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray


class Purpose(StrEnum):
    """What a stream is for; two purposes never share a stream."""

    DATA = "data"
    SPLIT = "split"
    RECORDS = "records"
    GENERATOR = "generator"
    PROBE_POSITIONS = "probe positions"
    NONCE_USER = "nonce user"
    NONCE_POOL = "nonce pool"
    SELECTION = "selection"
    PARTICIPATION = "participation"
    AVAILABILITY = "availability"
    TIME_ZONE = "time zone"
    DROPOUT = "dropout"
    DELAY = "delay"
    NOISE = "noise"
    NOISE_SHARE = "noise share"
    MONTE_CARLO = "monte carlo"
    CALIBRATION = "calibration"
    UTILITY = "utility"
    DISCLOSURE = "disclosure"
    BATCH = "batch"
    INITIAL_MODEL = "initial model"
    DIRECTIONS = "projection directions"
    AUGMENTATION = "augmentation"
    PARTITION = "partition"
    MEMBERSHIP = "membership"
    CANARY = "canary"
    ASSIGNMENT = "assignment"
    SYNTHESIS = "synthesis"


@dataclass(frozen=True)
class Simulated:
    """Participation and noise derive from the study seed: reproducible, no protection against who knows the seed."""

    seed: int

    @property
    def kind(self) -> str:
        return "simulated"

    @property
    def participation_key(self) -> bytes:
        return _digest(b"seed", str(self.seed).encode())


@dataclass(frozen=True)
class Protected:
    """Participation from a secret key; noise from the operating system. Not reproducible."""

    participation_key: bytes = field(repr=False)

    @property
    def kind(self) -> str:
        return "protected"


Randomness = Simulated | Protected


def stream(seed: int, purpose: Purpose, round: int = 0, user: str = "") -> np.random.Generator:
    """The generator of (seed, purpose, round, user)."""
    key = _digest(b"stream", str(seed).encode(), purpose.encode(), struct.pack("<q", round), user.encode())
    words = np.frombuffer(key, "<u8", 2).astype(np.uint64)
    return np.random.Generator(np.random.Philox(_Key(words)))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class _Key(ISeedSequence):
    """Philox' key itself; given as a plain key, NumPy would first gather entropy that nobody uses."""

    words: NDArray[np.uint64]

    def generate_state(self, n_words: int, dtype: object = np.uint32) -> NDArray[np.uint64]:
        """The (2,) words; Philox asks for nothing else."""
        return self.words


def participates(key: bytes, round: int, user: str, q: float) -> bool:
    """One user's Poisson draw for one round: a keyed hash against q. A retry repeats it; the key hides it."""
    return happens(key, Purpose.PARTICIPATION, round, user, q)


def happens(key: bytes, purpose: Purpose, round: int, user: str, probability: float) -> bool:
    """A coin of (key, purpose, round, user): independent of every other one, and the same whenever it is tossed."""
    return _hash(key, purpose, round, user) < probability * 2.0**64


def uniform(key: bytes, purpose: Purpose, round: int, user: str) -> float:
    """A number in [0, 1) of (key, purpose, round, user)."""
    return (_hash(key, purpose, round, user) >> 11) * 2.0**-53


def _hash(key: bytes, purpose: Purpose, round: int, user: str) -> int:
    mac = hashlib.blake2b(
        struct.pack("<q", round) + user.encode(), key=key[:64], digest_size=8, person=purpose.encode()
    )
    return int.from_bytes(mac.digest(), "little")


def _digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(struct.pack("<q", len(part)) + part for part in parts)).digest()
