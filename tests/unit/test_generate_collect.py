from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from coalmine.protocol.errors import GeneratorError
from coalmine.server.generate.cache import CachedGenerator
from coalmine.server.generate.collect import (
    collect_paraphrases,
    collect_samples,
    collect_variations,
    even_shares,
)
from coalmine.server.generate.fake import Answer, FakeGenerator
from coalmine.server.generate.judge import refuses, same
from coalmine.server.generate.rules import RulesGenerator


class HashingEncoder:
    """A word is a direction; a text is the sum of its words."""

    id = "hashing"
    dimension = 256

    def encode(self, texts: Sequence[str], *, what: str = "texts") -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                vectors[row, int(hashlib.sha256(word.encode()).hexdigest(), 16) % self.dimension] += 1
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


SOURCES = [f"alpha{n} beta{n} gamma{n} delta{n}" for n in range(8)]


@given(st.integers(0, 500), st.integers(1, 60))
def test_shares_are_even(size: int, sources: int) -> None:
    shares = even_shares(size, sources)
    assert sum(shares) == size
    assert max(shares) - min(shares) <= 1


def test_samples_are_spread_over_the_labels_in_every_prefix() -> None:
    done: list[int] = []
    pool = collect_samples(RulesGenerator(), ["a", "b", "c"], 100, 0, progress=done.append)
    assert len(set(pool.texts)) == 100
    assert sorted(np.bincount(pool.sources)) == [33, 33, 34]
    assert sorted(np.bincount(pool.sources[:10], minlength=3)) == [3, 3, 4]
    assert sum(done) == 100
    assert pool.tally.asked >= 100
    assert pool.cosines is None


def test_bad_answers_are_counted_and_replaced() -> None:
    schedule = (
        Answer.GOOD,
        Answer.BLANK,
        Answer.REPEAT,
        Answer.REFUSAL,
        Answer.UNFAITHFUL,
        Answer.VERBATIM,
        Answer.MARKED_REFUSAL,
    )
    generator = FakeGenerator(schedule)
    pool = collect_paraphrases(generator, SOURCES, 64, 0, HashingEncoder(), 0.5, attempts=200)
    tally = pool.tally
    assert len({same(text) for text in pool.texts}) == 64
    assert not {same(text) for text in pool.texts} & {same(text) for text in SOURCES}
    assert not any(refuses(text) for text in pool.texts)
    assert list(np.bincount(pool.sources)) == [8] * 8
    assert tally.asked == len(generator.asked)
    assert tally.asked == 64 + tally.blank + tally.repeated + tally.refused + tally.unfaithful
    assert min(tally.blank, tally.repeated, tally.refused, tally.unfaithful) > 0
    assert tally.refused > tally.blank
    assert pool.cosines is not None
    assert min(pool.cosines) >= 0.5


def test_excluded_texts_do_not_come_out() -> None:
    first = collect_samples(RulesGenerator(), ["x"], 20, 0)
    excluded = [f"  {text.upper()} " for text in first.texts[:10]]
    second = collect_samples(RulesGenerator(), ["x"], 20, 0, exclude=excluded)
    assert not {same(text) for text in second.texts} & {same(text) for text in excluded}
    assert second.tally.repeated >= 10


def test_other_sources_take_over_what_one_cannot_deliver(caplog: pytest.LogCaptureFixture) -> None:
    generator = FakeGenerator(barren=frozenset({SOURCES[3]}))
    with caplog.at_level("INFO"):
        pool = collect_paraphrases(generator, SOURCES, 64, 0, HashingEncoder(), 0.5, attempts=3)
    counts = np.bincount(pool.sources, minlength=8)
    assert counts[3] == 0
    assert counts.sum() == 64
    assert max(counts) == 10
    assert "8 of 64 texts are taken over" in caplog.text
    assert pool.tally.moved == 8
    assert SOURCES[3] not in caplog.text


def test_a_shortage_says_where_and_holds_no_text() -> None:
    with pytest.raises(GeneratorError, match=r"only 2 of 6 texts .* label 0 lacks 2, label 1 lacks 2") as caught:
        collect_samples(FakeGenerator((Answer.REPEAT,)), ["secret one", "secret two"], 6, 0, attempts=2)
    assert "secret" not in str(caught.value)


def test_nothing_to_collect_is_an_error() -> None:
    with pytest.raises(GeneratorError, match="at least one text"):
        collect_samples(RulesGenerator(), [], 5, 0)


def test_variations_differ_from_the_examples() -> None:
    groups = [
        ["the red fox runs over the hill", "a fox sleeps in the den"],
        ["stocks fell on monday", "bonds rose again"],
    ]
    pool = collect_variations(RulesGenerator(), groups, 40, 0)
    assert list(np.bincount(pool.sources)) == [20, 20]
    assert not {same(text) for text in pool.texts} & {same(text) for group in groups for text in group}


def test_a_pool_does_not_depend_on_the_cache(tmp_path: Path) -> None:
    plain = collect_paraphrases(RulesGenerator(), SOURCES, 64, 9, HashingEncoder(), 0.3)
    cached = CachedGenerator(RulesGenerator(), tmp_path)
    cached.paraphrase(SOURCES[2:5] * 3, 9)
    assert collect_paraphrases(cached, SOURCES, 64, 9, HashingEncoder(), 0.3) == plain
    assert collect_paraphrases(cached, SOURCES, 64, 9, HashingEncoder(), 0.3) == plain


@pytest.mark.parametrize(
    "text",
    [
        "I cannot help with that.",
        "I'm sorry, but I can't assist with this request.",
        "As an AI language model, I have no opinion.",
        "I am unable to rewrite this text.",
        "Sorry, I cannot do that",
        "I cannot.",
        "[refused]",
    ],
)
def test_refusals_are_recognised(text: str) -> None:
    assert refuses(text)


@pytest.mark.parametrize(
    "text",
    [
        "i can't mount the disk",
        "sorry, wrong channel",
        "I cannot boot into windows anymore",
        "unfortunately the driver crashed",
    ],
)
def test_complaints_are_no_refusals(text: str) -> None:
    assert not refuses(text)
