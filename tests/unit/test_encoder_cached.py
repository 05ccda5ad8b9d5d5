"""The cached encoder: each missing text once, stored as it comes, the same bits however it was embedded."""

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coalmine.clients.encoder.cache import EmbeddingCache
from coalmine.clients.encoder.cached import CachedEncoder
from coalmine.clients.encoder.fake import HashEncoder
from coalmine.protocol.errors import ModelError

TEXTS = [f"message number {n} about topic {n % 7}" for n in range(50)]


class Counting(HashEncoder):
    """Remembers what it was asked for."""

    def __init__(self, dimension=16):
        super().__init__(dimension)
        self.asked = []

    def encode(self, texts, *, what="texts"):
        self.asked.extend(texts)
        return super().encode(texts, what=what)


@pytest.fixture
def cache(tmp_path):
    return EmbeddingCache(tmp_path / "cache")


def test_equals_the_inner_encoder_cold_and_warm(cache):
    inner = Counting()
    cached = CachedEncoder(inner, cache, chunk_cost=100)
    expected = HashEncoder(16).encode(TEXTS)
    np.testing.assert_array_equal(cached.encode(TEXTS), expected)
    assert sorted(inner.asked) == sorted(TEXTS)
    np.testing.assert_array_equal(cached.encode(TEXTS), expected)
    assert len(inner.asked) == len(TEXTS)
    assert (cached.id, cached.dimension) == (inner.id, 16)


def test_duplicates_are_embedded_once_and_only_missing_texts_are(cache):
    inner = Counting()
    cached = CachedEncoder(inner, cache)
    cached.encode(TEXTS[:10])
    inner.asked.clear()
    texts = [TEXTS[12], TEXTS[3], TEXTS[12], TEXTS[3]]
    np.testing.assert_array_equal(cached.encode(texts), HashEncoder(16).encode(texts))
    assert inner.asked == [TEXTS[12]]


def test_no_texts_give_no_rows(cache):
    assert CachedEncoder(Counting(), cache).encode([]).shape == (0, 16)


def test_progress_is_told_the_missing_texts_and_only_when_there_are_any(cache):
    told = []

    @contextmanager
    def progress(what, missing):
        told.append((what, missing))
        yield lambda done: told.append(done)
        told.append("closed")

    cached = CachedEncoder(Counting(), cache, progress, chunk_cost=200)
    cached.encode(TEXTS[:20])
    told.clear()
    cached.encode([*TEXTS[:40], TEXTS[39]], what="records")
    assert told[0] == ("records", 20)
    assert sum(told[1:-1]) == 20
    assert len(told) > 3
    assert told[-1] == "closed"
    told.clear()
    cached.encode(TEXTS[:40])
    assert told == []


def test_an_interruption_keeps_the_chunks_that_were_done(cache):
    class Interrupted(Counting):
        def encode(self, texts, *, what="texts"):
            if len(self.asked) >= 20:
                raise KeyboardInterrupt
            return super().encode(texts, what=what)

    with pytest.raises(KeyboardInterrupt):
        CachedEncoder(interrupted := Interrupted(), cache, chunk_cost=100).encode(TEXTS)
    again = Counting()
    np.testing.assert_array_equal(CachedEncoder(again, cache).encode(TEXTS), HashEncoder(16).encode(TEXTS))
    assert sorted(again.asked + interrupted.asked) == sorted(TEXTS)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(random=st.randoms(use_true_random=False), cost=st.integers(1, 500))
def test_chunks_may_come_in_any_order(tmp_path_factory, random, cost):
    inner = Counting()

    def workers(chunks):
        done = [(index, inner.encode(chunk)) for index, chunk in enumerate(chunks)]
        random.shuffle(done)
        yield from done

    cache = EmbeddingCache(tmp_path_factory.mktemp("cache"))
    cached = CachedEncoder(inner, cache, embed=workers, chunk_cost=cost)
    np.testing.assert_array_equal(cached.encode(TEXTS), HashEncoder(16).encode(TEXTS))
    np.testing.assert_array_equal(cached.encode(TEXTS[::-1]), HashEncoder(16).encode(TEXTS[::-1]))


def test_an_embedding_that_is_not_finite_is_refused_and_not_stored(cache):
    class Broken(HashEncoder):
        def encode(self, texts, *, what="texts"):
            rows = super().encode(texts, what=what)
            rows[-1, 0] = np.nan
            return rows

    with pytest.raises(ModelError, match="not finite"):
        CachedEncoder(Broken(16), cache).encode(TEXTS)
    inner = Counting()
    CachedEncoder(inner, cache).encode(TEXTS)
    assert len(inner.asked) == len(TEXTS)


@pytest.mark.parametrize(
    ("embed", "message"),
    [
        (lambda chunks: iter([]), "were not embedded"),
        (lambda chunks: iter([(0, np.zeros((3, 16), np.float32))]), "shape"),
        (lambda chunks: iter([(9, np.zeros((50, 16), np.float32))]), "never asked for"),
        (lambda chunks: ((0, HashEncoder(16).encode(chunks[0])) for _ in range(2)), "came twice"),
    ],
)
def test_workers_that_deliver_something_else_are_refused(cache, embed, message):
    with pytest.raises(ModelError, match=message):
        CachedEncoder(HashEncoder(16), cache, embed=embed).encode(TEXTS)


def test_an_encoder_of_another_dimension_is_refused_naming_both(cache):
    class Same(HashEncoder):
        id = "the same name"

    CachedEncoder(Same(16), cache).encode(TEXTS)
    with pytest.raises(ModelError, match=r"dimension 16.* 24"):
        CachedEncoder(Same(24), cache).encode(TEXTS[:1])


def test_machines_whose_bits_may_differ_do_not_share(cache):
    here, there = Counting(), Counting()
    here.machine, there.machine = "one processor", "another processor"
    CachedEncoder(here, cache).encode(TEXTS)
    CachedEncoder(there, cache).encode(TEXTS)
    assert len(there.asked) == len(TEXTS)
