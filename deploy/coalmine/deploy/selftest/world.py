"""A small world in which every canary is alone with its probes.

Ordinary users, their candidates, every canary's records and their probes live in directions of their own, so nobody but
a canary votes for its probes and nobody at all for a phantom's. Trials of one round are then independent of each other,
and a phantom's probes show nothing but noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.clients.client import Client
from coalmine.clients.shard import Hosted
from coalmine.deploy.selftest.plan import Layout
from coalmine.protocol.ballot import Ballot
from coalmine.protocol.bank import Bank, commit
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.randomness import Purpose, stream
from coalmine.protocol.vote import grid_bits

LABELS = 4
"""Records of ordinary and of spread users have one of so many labels; a focused canary's all have one."""
_ORDINARY_DIMENSIONS = 32


@dataclass(frozen=True)
class Cast:
    """Canaries of one kind, or phantoms.

    Attributes:
        votes: (n, p) their clipped votes on the whole bank. probes: (n, r) bank positions of each one's own probes.
    """

    votes: NDArray[np.float64]
    probes: NDArray[np.int64]


@dataclass(frozen=True)
class World:
    """Users, canaries, phantoms and a committed bank.

    Attributes:
        hosted: ordinary users and inserted canaries. labels: (rows,) of every record, ascending within a user.
        inserted, phantoms: by kind, "focused" and "spread".
    """

    hosted: Hosted
    labels: NDArray[np.int64]
    ballot: Ballot
    bits: int
    inserted: dict[str, Cast]
    phantoms: dict[str, Cast]


def build_world(layout: Layout, mechanism: Mechanism, seed: int) -> World:
    """Random unit embeddings; everything follows from the seed."""
    rng = stream(seed, Purpose.DATA, user="selftest")
    k = mechanism.votes_per_record
    kinds = {"focused": (layout.focused, 1), "spread": (layout.spread, LABELS)}
    themes = sum(2 * count * each for count, each in kinds.values())
    width = _ORDINARY_DIMENSIONS + themes
    size = layout.candidates + themes * k
    place = rng.permutation(size)
    candidates = np.zeros((size, width), np.float32)
    candidates[place[: layout.candidates], :_ORDINARY_DIMENSIONS] = _unit(rng, layout.candidates)
    own = place[layout.candidates :].reshape(themes, k)
    for theme, positions in enumerate(own):
        candidates[positions, _ORDINARY_DIMENSIONS + theme] = 1
        candidates[positions, :_ORDINARY_DIMENSIONS] = 0.2 * _unit(rng, k)
    candidates /= np.linalg.norm(candidates, axis=1, keepdims=True)

    canaries: dict[str, list[tuple[Client, NDArray[np.int64], NDArray[np.int64]]]] = {}
    theme = 0
    for kind, (count, each) in kinds.items():
        canaries[kind] = []
        for number in range(2 * count):
            mine = np.arange(theme, theme + each)
            theme += each
            about = mine if each > 1 else np.repeat(mine, layout.records)
            records = np.eye(width, dtype=np.float32)[_ORDINARY_DIMENSIONS + about]
            labels = np.arange(each) if each > 1 else np.zeros(len(about), np.int64)
            canaries[kind].append((Client(f"{kind} {number}", records), labels, own[mine].ravel()))

    users, labels_of = [], []
    ordinary = layout.users - layout.focused - layout.spread
    for number in range(ordinary):
        records = np.zeros((layout.records, width), np.float32)
        records[:, :_ORDINARY_DIMENSIONS] = _unit(rng, layout.records)
        users.append(Client(f"user {number}", records))
        labels_of.append(np.sort(rng.integers(LABELS, size=layout.records)))
    for some in canaries.values():
        for client, labels, _ in some[: len(some) // 2]:
            users.append(client)
            labels_of.append(labels)
    bank = Bank(tuple(f"candidate {n}" for n in range(size)), ("",) * size, "selftest")
    bits = grid_bits(layout.users, mechanism)
    positions = np.sort(own.ravel())
    hosted = Hosted(
        tuple(user.id for user in users),
        np.concatenate([user.records for user in users]),
        np.cumsum([0, *(len(user.records) for user in users)]).astype(np.int64),
    )

    def cast(some: list[tuple[Client, NDArray[np.int64], NDArray[np.int64]]]) -> Cast:
        votes = np.array([client.votes_on(candidates, mechanism, bits) for client, _, _ in some]) / 2.0**bits
        return Cast(votes, np.array([probes for _, _, probes in some]))

    return World(
        hosted,
        np.concatenate(labels_of).astype(np.int64),
        Ballot(bank, commit(bank), candidates, positions),
        bits,
        {kind: cast(some[: len(some) // 2]) for kind, some in canaries.items()},
        {kind: cast(some[len(some) // 2 :]) for kind, some in canaries.items()},
    )


def _unit(rng: np.random.Generator, n: int) -> NDArray[np.float32]:
    vectors = rng.normal(size=(n, _ORDINARY_DIMENSIONS))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)
