"""The judge between a generator and a pool: every text is distinct, answers its request, and says what its source says.

Blank, repeated, refused and unfaithful texts are counted and asked for again under new seeds; none is kept, nothing
is padded. What comes out depends on the generator and the arguments alone, not on what a cache already holds.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from coalmine.protocol.errors import GeneratorError
from coalmine.protocol.pool import Tally, TextPool
from coalmine.protocol.ports import Advance, Encoder, Generator
from coalmine.protocol.randomness import Purpose, stream
from coalmine.server.generate.judge import refuses, same

MIN_COSINE = 0.6
"""Default bound on the cosine between a rewording and its source."""
ATTEMPTS = 16
"""Default number of times a source is asked before others take over its share."""

_LISTED = 8
_Ask = Callable[[Sequence[int], int], list[str]]
_Cosines = Callable[[Sequence[int], Sequence[str]], list[float]]

_log = logging.getLogger(__name__)


def collect_samples(
    generator: Generator,
    labels: Sequence[str],
    size: int,
    seed: int,
    *,
    exclude: Collection[str] = (),
    attempts: int = ATTEMPTS,
    progress: Advance | None = None,
) -> TextPool:
    """``size`` distinct texts from labels only, spread evenly over the labels.

    ``sources`` holds the index of each text's label; any prefix of the pool is spread evenly too. ``exclude`` holds
    texts that must not come out (compared by words, without case).

    Raises:
        GeneratorError: fewer texts than asked for could be had.
    """

    def ask(indices: Sequence[int], seed: int) -> list[str]:
        return generator.sample([labels[index] for index in indices], seed)

    return _Collection("label", len(labels), size, {same(text) for text in exclude}, attempts, progress).run(
        ask, seed, generator.id
    )


def collect_paraphrases(
    generator: Generator,
    sources: Sequence[str],
    size: int,
    seed: int,
    encoder: Encoder,
    min_cosine: float = MIN_COSINE,
    *,
    exclude: Collection[str] = (),
    attempts: int = ATTEMPTS,
    progress: Advance | None = None,
) -> TextPool:
    """``size`` distinct rewordings, spread evenly over the sources, none verbatim.

    Each has a cosine of at least ``min_cosine`` to its source.

    ``sources`` of the pool holds the index of each text's source; any prefix of the pool is spread evenly too. A
    rewording equal to any source or to a text in ``exclude`` (compared by words, without case) counts as repeated.

    Raises:
        GeneratorError: fewer texts than asked for could be had.
    """
    vectors = encoder.encode(list(sources), what="texts to reword")

    def ask(indices: Sequence[int], seed: int) -> list[str]:
        return generator.paraphrase([sources[index] for index in indices], seed)

    def cosines(indices: Sequence[int], texts: Sequence[str]) -> list[float]:
        rewordings = encoder.encode(list(texts), what="rewordings").astype(np.float64)
        return [float(value) for value in np.einsum("nd,nd->n", rewordings, vectors[list(indices)])]

    taken = {same(text) for text in (*exclude, *sources)}
    declining = frozenset(index for index, text in enumerate(sources) if refuses(text))
    collection = _Collection("source", len(sources), size, taken, attempts, progress, declining)
    return collection.run(ask, seed, generator.id, cosines, min_cosine)


def collect_variations(
    generator: Generator,
    examples: Sequence[Sequence[str]],
    size: int,
    seed: int,
    *,
    exclude: Collection[str] = (),
    attempts: int = ATTEMPTS,
    progress: Advance | None = None,
) -> TextPool:
    """``size`` distinct new texts in the manner of groups of examples, spread evenly over the groups.

    ``sources`` holds the index of each text's group. A text equal to any example or to a text in ``exclude`` counts
    as repeated.

    Raises:
        GeneratorError: fewer texts than asked for could be had.
    """

    def ask(indices: Sequence[int], seed: int) -> list[str]:
        return generator.vary([examples[index] for index in indices], seed)

    taken = {same(text) for text in exclude} | {same(text) for group in examples for text in group}
    return _Collection("group", len(examples), size, taken, attempts, progress).run(ask, seed, generator.id)


def even_shares(size: int, sources: int) -> list[int]:
    """``size`` split over ``sources`` as evenly as whole numbers go, the larger shares spread evenly too."""
    marks = [size * index // sources for index in range(sources + 1)]
    return [after - before for before, after in pairwise(marks)]


@dataclass
class _Collection:
    """One pool in the making.

    Attributes:
        noun: what a source is called in messages.
        sources: how many there are.
        taken: texts that must not come out, by `judge.same`; grows with every text kept.
        attempts: how often a source is asked before others take over.
        declining: sources that read like a refusal themselves, so that a faithful rewording of them is none.
        kept: for each source its texts and their cosines.
    """

    noun: str
    sources: int
    size: int
    taken: set[str]
    attempts: int
    progress: Advance | None
    declining: frozenset[int] = frozenset()
    kept: list[list[tuple[str, float]]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def run(
        self, ask: _Ask, seed: int, generator_id: str, cosines: _Cosines | None = None, bound: float = -1.0
    ) -> TextPool:
        """Ask until every share is filled; other sources take over what some cannot deliver."""
        if self.size < 1 or self.sources < 1 or self.attempts < 1:
            raise GeneratorError(
                f"cannot collect {self.size} texts from {self.sources} {self.noun}s in {self.attempts} attempts",
                remedy=f"at least one text, one {self.noun} and one attempt",
            )
        self.kept = [[] for _ in range(self.sources)]
        shares = even_shares(self.size, self.sources)
        quota = list(shares)
        willing = set(range(self.sources))
        asked = 0
        while True:
            for _ in range(self.attempts):
                turns = self._turns(quota)
                if not turns:
                    return self._pool(generator_id, with_cosines=cosines is not None)
                self._judge(turns, ask(turns, _attempt_seed(seed, asked)), cosines, bound)
                asked += 1
            short = {index for index in range(self.sources) if len(self.kept[index]) < quota[index]}
            willing -= short
            if short and not willing:
                raise self._shortage(shares)
            for index in short:
                quota[index] = len(self.kept[index])
            missing = self.size - sum(quota)
            for index, share in zip(sorted(willing), even_shares(missing, len(willing)), strict=True):
                quota[index] += share
            if missing:
                self.counts["moved"] += missing
                _log.info("%d of %d texts are taken over from %ss %s", missing, self.size, self.noun, sorted(short))

    def _turns(self, quota: Sequence[int]) -> list[int]:
        """Whom to ask now, once for every text still missing; first everyone once, then everyone twice, ..."""
        missing = [quota[index] - len(self.kept[index]) for index in range(self.sources)]
        return [index for turn in range(max(missing)) for index in range(self.sources) if turn < missing[index]]

    def _judge(self, turns: Sequence[int], answers: Sequence[str], cosines: _Cosines | None, bound: float) -> None:
        """Count what is wrong, keep the rest."""
        self.counts["asked"] += len(turns)
        fit: list[tuple[int, str]] = []
        for index, answer in zip(turns, answers, strict=True):
            text = " ".join(answer.split())
            if fault := self._fault(index, text):
                self.counts[fault] += 1
            else:
                self.taken.add(same(text))
                fit.append((index, text))
        if not fit:
            return
        values = cosines([index for index, _ in fit], [text for _, text in fit]) if cosines else [1.0] * len(fit)
        for (index, text), value in zip(fit, values, strict=True):
            if value >= bound:
                self.kept[index].append((text, value))
            else:
                self.counts["unfaithful"] += 1
        if self.progress:
            self.progress(sum(value >= bound for value in values))

    def _fault(self, index: int, text: str) -> str | None:
        if not text:
            return "blank"
        if index not in self.declining and refuses(text):
            return "refused"
        return "repeated" if same(text) in self.taken else None

    def _pool(self, generator_id: str, *, with_cosines: bool) -> TextPool:
        """Everyone's first text, then everyone's second, ..."""
        deepest = max(len(texts) for texts in self.kept)
        order = [
            (turn, index) for turn in range(deepest) for index in range(self.sources) if turn < len(self.kept[index])
        ]
        chosen = [(index, *self.kept[index][turn]) for turn, index in order]
        return TextPool(
            texts=tuple(text for _, text, _ in chosen),
            sources=tuple(index for index, _, _ in chosen),
            generator_id=generator_id,
            tally=Tally(**self.counts),
            cosines=tuple(cosine for _, _, cosine in chosen) if with_cosines else None,
        )

    def _shortage(self, shares: Sequence[int]) -> GeneratorError:
        have = sum(len(texts) for texts in self.kept)
        lacking = {
            index: shares[index] - len(texts) for index, texts in enumerate(self.kept) if shares[index] > len(texts)
        }
        listed = ", ".join(f"{self.noun} {index} lacks {count}" for index, count in list(lacking.items())[:_LISTED])
        more = f" and {len(lacking) - _LISTED} more" if len(lacking) > _LISTED else ""
        reasons = ", ".join(
            f"{self.counts[reason]} {reason}" for reason in ("blank", "repeated", "refused", "unfaithful")
        )
        return GeneratorError(
            f"only {have} of {self.size} texts could be had from {self.counts['asked']} requests ({reasons}): "
            f"{listed}{more}",
            where="text pool",
            remedy="ask for fewer texts (bank.size, audit.pool), allow more attempts or a lower cosine"
            " (generator.min_cosine), or use another generator",
        )


def _attempt_seed(seed: int, attempt: int) -> int:
    return int(stream(seed, Purpose.GENERATOR, attempt, "attempt").integers(2**62))
