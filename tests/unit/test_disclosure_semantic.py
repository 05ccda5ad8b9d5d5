"""Embeddings of users and their neighbours, against all pairs in double precision."""

import numpy as np
import pytest
from fakes.material import Held
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import naive_semantic

from coalmine.auditor.disclosure.semantic import Semantic
from coalmine.clients.encoder.fake import HashEncoder
from coalmine.protocol.errors import DataError, StudyError

TEXT = st.lists(st.sampled_from("abcdef"), max_size=5).map(" ".join)
ENCODER = HashEncoder(24)


class Counting(HashEncoder):
    def __init__(self):
        super().__init__(16)
        self.sizes = []

    def encode(self, texts, *, what="texts"):
        self.sizes.append(len(texts))
        return super().encode(texts, what=what)


class Signs:
    """Embeds "+" and "-" as opposite vectors."""

    id, dimension = "signs", 2

    def encode(self, texts, *, what="texts"):
        return np.array([[1.0 if text == "+" else -1.0, 0.0] for text in texts], np.float32)


def similar(records, outputs, users, **settings):
    return Semantic(ENCODER, **settings).similarities(Held(records, outputs, users))


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.integers(0, 6), TEXT), max_size=20),
    st.lists(TEXT, max_size=10),
    st.integers(1, 4),
    st.integers(1, 4),
)
def test_equals_all_pairs(records, outputs, kappa, kappa_y):
    if len({user for user, text in records if text}) < 2 or not any(outputs):
        with pytest.raises(DataError, match="text"):
            similar(records, outputs, 7)
        return
    found = similar(records, outputs, 7, neighbours=kappa, synthetic_neighbours=kappa_y, block=3)
    rarity, nearest, closeness = naive_semantic.similarities(
        records, outputs, 7, lambda text: ENCODER.encode([text])[0], kappa, kappa_y
    )
    np.testing.assert_allclose(found.rarity, rarity, atol=1e-6)
    np.testing.assert_allclose(found.nearest, nearest, atol=1e-6)
    for user, output in enumerate(found.synthetic):  # of equally close ones any: rounding decides
        assert (output < 0) == np.isnan(nearest[user, 0])
        assert output < 0 or closeness[user, output] == pytest.approx(nearest[user, 0], abs=1e-6)


def test_blocks_and_threads_change_no_bit():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(list("abcdefghij"), 6)) for _ in range(300)]
    records = [(int(user), text) for user, text in zip(rng.integers(0, 80, 200), texts[:200], strict=True)]
    first, *others = (
        similar(records, texts[150:], 80, block=block, threads=threads)
        for block, threads in ((4096, 1), (1, 1), (7, 2), (64, 2))
    )
    for other in others:
        for one, two in zip(vars(first).values(), vars(other).values(), strict=True):
            np.testing.assert_array_equal(one, two)
    assert first.nearest.shape == (80, 10)
    known = ~np.isnan(first.rarity)
    assert (np.diff(first.nearest[known], axis=1) <= 0).all()


def test_a_copied_user_is_as_close_as_can_be_and_ties_go_to_the_first():
    found = similar([(0, "a b"), (1, "c d"), (2, "e f")], ["x y", "c d", "c d"], 3, synthetic_neighbours=2)
    assert found.nearest[1].tolist() == [1.0, 1.0]
    assert found.synthetic[1] == 1
    assert (found.nearest[[0, 2]] < 0.9).all()


def test_rarity_leaves_the_user_itself_out_even_in_a_crowd():
    """Fifteen users say the same: more than there are neighbours, so some do not find themselves among the nearest."""
    records = [(user, "we all say this") for user in range(15)] + [(15, "nobody else talks of lighthouses")]
    found = similar(records, ["z"], 16)
    assert found.rarity[:15].tolist() == [1.0] * 15
    assert found.rarity[15] < 0.5
    assert np.argmin(found.rarity) == 15


def test_records_count_the_same_and_may_lie_anywhere():
    together = similar([(0, "a"), (0, "b c d"), (1, "e"), (2, "f")], ["a"], 3)
    scattered = similar([(2, "f"), (0, "b c d"), (1, "e"), (0, "a")], ["a"], 3)
    np.testing.assert_allclose(together.nearest, scattered.nearest, atol=1e-7)
    a, bcd = ENCODER.encode(["a", "b c d"]).astype(float)
    assert together.nearest[0, 0] == pytest.approx((a + bcd) @ a / np.linalg.norm(a + bcd), abs=1e-6)


def test_users_without_an_embedding():
    found = similar([(0, "a"), (1, " \n"), (3, "b")], ["a", "", "b"], 5)
    assert np.isnan(found.rarity).tolist() == [False, True, True, False, True]
    assert np.isnan(found.nearest[:, 0]).tolist() == [False, True, True, False, True]
    assert found.synthetic.tolist() == [0, -1, -1, 2, -1]
    cancelled = Semantic(Signs()).similarities(Held([(0, "+"), (0, "-"), (1, "+"), (2, "-")], ["+"]))
    assert np.isnan(cancelled.rarity).tolist() == [True, False, False]
    assert cancelled.nearest[1:, 0].tolist() == [1.0, -1.0]


def test_texts_are_embedded_in_blocks():
    encoder = Counting()
    records = [(i % 10, f"word{i}") for i in range(100)]
    Semantic(encoder, block=16).similarities(Held(records, [f"w{i}" for i in range(40)]))
    assert max(encoder.sizes) == 16
    assert sum(encoder.sizes) == 140
    encoder.sizes.clear()
    Semantic(encoder).similarities(Held([(0, "a" * 10_000_000), (1, "b" * 10_000_000), (2, "c")], ["d"]))
    assert encoder.sizes == [2, 1, 1]  # 20 MB close a block


@pytest.mark.parametrize(
    ("records", "outputs", "message"),
    [
        ([], ["a"], "two users"),
        ([(0, "a"), (1, " ")], ["a"], "two users"),
        ([(0, "a"), (1, "b")], [], "synthetic"),
        ([(0, "a"), (1, "b")], ["", "\t"], "synthetic"),
    ],
)
def test_too_little_text(records, outputs, message):
    with pytest.raises(DataError, match=message):
        similar(records, outputs, 2)


@pytest.mark.parametrize("key", ["neighbours", "synthetic_neighbours", "block", "threads"])
def test_settings_out_of_range(key):
    with pytest.raises(StudyError, match=key):
        Semantic(ENCODER, **{key: 0})


def test_notes_say_how_users_are_embedded():
    assert "mean of its records" in Semantic(ENCODER).notes[0]
    assert ENCODER.id in Semantic(ENCODER).notes[0]
