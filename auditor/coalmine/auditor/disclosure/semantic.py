"""Semantic closeness: is what a private user means, and few others do, said in the synthetic output (arXiv 2606.16952)?

A user is one embedding: the mean of its records' unit embeddings, scaled to unit length, so that every record counts
the same however long it is. Blank records and blank synthetic texts have no meaning and are left out.

Searches are exact: all pairs, in blocks, by one single-precision product whose candidates are ranked in double
precision, ties to the lowest index. Neither blocks nor threads change the result (`coalmine.protocol.route`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.disclosure.feature_class import Material, Similarities
from coalmine.protocol.errors import DataError, StudyError
from coalmine.protocol.ports import Encoder
from coalmine.protocol.route import Routes, reroute

_BLOCK_CHARACTERS = 1 << 24
_CANCELLED = 1e-6
"""Records whose mean is shorter than this point in no common direction: rounding would decide it."""


@dataclass(frozen=True)
class Semantic:
    """A `SimilarityClass`.

    Memory: one embedding per private user (12 bytes a coordinate while they are summed, 4 after) and one block of
    texts and synthetic embeddings, never all of them.

    Attributes:
        neighbours: kappa, how many nearest other users decide the rarity of one.
        synthetic_neighbours: kappa_Y, how many nearest synthetic records are reported.
        block: texts embedded at once; threads: of the search. Performance only.
    """

    encoder: Encoder
    neighbours: int = 10
    synthetic_neighbours: int = 10
    name: str = "semantic"
    block: int = 4096
    threads: int = 1

    def __post_init__(self) -> None:
        for key in ("neighbours", "synthetic_neighbours", "block", "threads"):
            if getattr(self, key) < 1:
                raise StudyError(f"{getattr(self, key)} is too few", where=key, remedy="needs at least 1")

    @property
    def notes(self) -> tuple[str, ...]:
        return (
            f"one embedding per user, the mean of its records' embeddings, by {self.encoder.id}",
            f"rarity: mean cosine to the {self.neighbours} nearest other users",
        )

    def similarities(self, material: Material) -> Similarities:
        """See `SimilarityClass`.

        Users without a record that is not blank, or whose records cancel, have no embedding. Where fewer than kappa
        other users have one, rarity is the mean over those there are.

        Raises:
            DataError: fewer than two users with an embedding, or no synthetic record that is not blank.
        """
        users, embeddings = self._users(material)
        if len(users) < 2:
            raise DataError(
                "rarity needs at least two users with text", where="private records", remedy="check the text column"
            )
        n = len(material.train)
        routes = self._synthetic(material, embeddings)
        rarity = np.full(n, np.nan)
        rarity[users] = _rarity(embeddings, self.neighbours, self.threads)
        nearest = np.full((n, routes.index.shape[1]), np.nan)
        nearest[users] = _cosine(routes.distance)
        synthetic = np.full(n, -1, np.int64)
        synthetic[users] = routes.index[:, 0]
        return Similarities(rarity, nearest, synthetic)

    def _users(self, material: Material) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """(u,) the users with an embedding and (u, d) their embeddings."""
        sums = np.zeros((len(material.train), self.encoder.dimension))
        records = np.zeros(len(sums), np.int64)
        for users, texts in _blocks(((entry.user, entry.text) for entry in material.private()), self.block):
            np.add.at(sums, users, self.encoder.encode(texts, what="private records"))
            np.add.at(records, users, 1)
        lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))
        known = np.flatnonzero(lengths > _CANCELLED * records)
        return known, (sums[known] / lengths[known, None]).astype(np.float32)

    def _synthetic(self, material: Material, embeddings: NDArray[np.float32]) -> Routes:
        """The nearest synthetic records of each user with an embedding."""
        k = self.synthetic_neighbours
        routes = Routes(np.full((len(embeddings), k), -1, np.int32), np.full((len(embeddings), k), np.inf))
        told = 0
        for positions, texts in _blocks(enumerate(material.synthetic()), self.block):
            vectors = self.encoder.encode(texts, what="synthetic records")
            routes = reroute(routes, embeddings, vectors, positions, threads=self.threads)
            told += len(texts)
        if told == 0:
            raise DataError("no record with text", where="synthetic output", remedy="check the text column")
        return Routes(routes.index[:, :told], routes.distance[:, :told])


def _rarity(embeddings: NDArray[np.float32], neighbours: int, threads: int) -> NDArray[np.float64]:
    """(u,) mean cosine of each row to its nearest other rows."""
    u = len(embeddings)
    k = min(neighbours, u - 1)
    nobody = Routes(np.full((u, k + 1), -1, np.int32), np.full((u, k + 1), np.inf))
    routes = reroute(nobody, embeddings, embeddings, np.arange(u), threads=threads)
    others = routes.index != np.arange(u)[:, None]
    others[others.all(axis=1), -1] = False  # crowded out by k + 1 others at the same place
    mean: NDArray[np.float64] = _cosine(routes.distance[others].reshape(u, k)).mean(axis=1)
    return mean


def _cosine(squared_distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of unit vectors."""
    return 1 - squared_distance / 2


def _blocks(texts: Iterable[tuple[int, str]], size: int) -> Iterator[tuple[NDArray[np.int64], list[str]]]:
    """Blocks of numbered texts without the blank ones: at most ``size``, and closed early when they are long."""
    numbers: list[int] = []
    block: list[str] = []
    characters = 0
    for number, text in texts:
        if not text or text.isspace():
            continue
        numbers.append(number)
        block.append(text)
        characters += len(text)
        if len(block) == size or characters >= _BLOCK_CHARACTERS:
            yield np.array(numbers), block
            numbers, block, characters = [], [], 0
    if block:
        yield np.array(numbers), block
