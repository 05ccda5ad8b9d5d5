"""Chunks and batches hold every text once and do not depend on its neighbours' order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from coalmine.clients.encoder.batches import MAX_TOKENS, MIN_TOKENS, plan_batches
from coalmine.clients.encoder.chunks import in_this_process, plan_chunks
from coalmine.clients.encoder.fake import HashEncoder

distinct_texts = st.lists(st.text(max_size=40), unique=True, max_size=60)
costs = st.integers(1, 300)


@given(distinct_texts, costs)
def test_chunks_cover_every_text_once(texts, cost):
    chunks = plan_chunks(texts, cost)
    assert sorted(index for chunk in chunks for index in chunk) == list(range(len(texts)))
    assert all(chunks)


@given(distinct_texts, costs)
def test_only_a_chunk_of_one_text_may_cost_more_than_asked(texts, cost):
    assert all(len(chunk) == 1 or sum(len(texts[i]) for i in chunk) <= cost for chunk in plan_chunks(texts, cost))


@given(distinct_texts, costs, st.randoms(use_true_random=False))
def test_chunks_do_not_depend_on_order(texts, cost, random):
    shuffled = random.sample(texts, len(texts))
    here = [[texts[i] for i in chunk] for chunk in plan_chunks(texts, cost)]
    there = [[shuffled[i] for i in chunk] for chunk in plan_chunks(shuffled, cost)]
    assert here == there


def test_long_texts_come_first():
    texts = ["a", "ccccc", "bb"]
    assert plan_chunks(texts, 1) == [[1], [2], [0]]


def test_chunks_are_embedded_in_this_process():
    encoder = HashEncoder()
    (first, a), (second, b) = in_this_process(encoder)([["x", "y"], ["z"]])
    assert (first, second) == (0, 1)
    np.testing.assert_array_equal(np.concatenate([a, b]), encoder.encode(["x", "y", "z"]))


@given(st.lists(st.integers(1, 300), max_size=200), st.booleans())
def test_batches_cover_every_text_once_and_never_mix_lengths(lengths, alone):
    batches = list(plan_batches(lengths, alone=alone))
    kept = [int(row) for batch in batches for row in batch.rows[: batch.kept]]
    assert sorted(kept) == list(range(len(lengths)))
    for batch in batches:
        (length,) = {lengths[row] for row in batch.rows}
        assert (1 if alone else MIN_TOKENS) <= len(batch.rows) * length <= max(MAX_TOKENS, MIN_TOKENS + length)
        assert set(batch.rows) == set(batch.rows[: batch.kept])


@given(st.lists(st.integers(1, 300), max_size=50))
def test_alone_means_one_text_per_batch(lengths):
    assert all(len(batch.rows) == batch.kept == 1 for batch in plan_batches(lengths, alone=True))


def test_filling_up_wastes_little():
    rng = np.random.default_rng(1)
    lengths = rng.integers(10, 60, 1000)
    computed = sum(len(batch.rows) * int(lengths[batch.rows[0]]) for batch in plan_batches(lengths.tolist()))
    assert computed <= 1.02 * lengths.sum()
