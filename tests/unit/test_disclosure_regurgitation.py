"""Word n-grams against sets of tuples."""

import numpy as np
import pytest
from fakes.material import Held
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import naive_holders

from coalmine.auditor.disclosure import regurgitation
from coalmine.auditor.disclosure.ngrams import NgramIndex
from coalmine.auditor.disclosure.regurgitation import Regurgitation
from coalmine.protocol.errors import DataError, StudyError

KS = (1, 2, 3)
WORDS = ("a", "b", "c", "ä", "a\u0308", "e\u0301é", "日本", "\U0001f426", "a" * 40)
TEXT = st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)
PASSAGE = " ".join(f"word{i}" for i in range(25))


def as_dict(matches):
    return {
        tuple(feature.split(" ")): (tuple(holders), first)
        for feature, holders, first in zip(
            matches.features, matches.holders.tolist(), matches.synthetic.tolist(), strict=True
        )
    }


def check(records, outputs, n_min, n_max, hash_bits=64):
    of_class = Regurgitation(n_min, n_max, hash_bits=hash_bits)
    for k, matches in zip(KS, of_class.matches(Held(records, outputs), KS), strict=True):
        assert matches.k == k
        assert matches.holders.shape == (len(matches.features), k)
        expected = naive_holders.held_by(records, outputs, lambda text: naive_holders.ngrams(text, n_min, n_max), k)
        assert as_dict(matches) == expected
        assert len(matches.features) == len(expected)  # no n-gram twice
        assert matches.per_user(8).sum() == k * len(matches.features)


@settings(max_examples=300)
@given(
    records=st.lists(st.tuples(st.integers(0, 5), TEXT), max_size=12),
    outputs=st.lists(TEXT, max_size=10),
    n_min=st.integers(1, 4),
    longer=st.integers(0, 5),
    hash_bits=st.sampled_from([64, 64, 3, 0]),
    batch=st.sampled_from([1, 20, 1 << 19]),
)
def test_equals_sets_of_tuples(records, outputs, n_min, longer, hash_bits, batch):
    """With repeats, ties, short and empty texts, unicode, users in pieces, batches, and hashes that collide."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regurgitation, "_BATCH", batch)
        check(records, outputs, n_min, n_min + longer, hash_bits)


@settings(max_examples=40)
@given(
    records=st.lists(st.tuples(st.integers(0, 3), TEXT), min_size=1, max_size=20),
    chosen=st.lists(st.tuples(st.integers(0, 19), st.integers(0, 10)), max_size=8),
    hash_bits=st.sampled_from([64, 2]),
)
def test_equals_sets_of_tuples_where_much_is_copied(records, chosen, hash_bits):
    outputs = [" ".join(records[i % len(records)][1].split()[cut:]) + " b a" for i, cut in chosen]
    check(records, outputs, 3, 9, hash_bits)


def test_equal_hashes_are_not_equal_texts():
    """Two passages, all hashes equal: each keeps its own holder."""
    other = " ".join(f"other{i}" for i in range(11))
    material = Held([(0, PASSAGE), (1, other)], [other])
    (matches,) = Regurgitation(hash_bits=0).matches(material, [1])
    assert list(matches.features) == [other]
    assert matches.holders.tolist() == [[1]]


def test_a_copied_passage_counts_every_ngram():
    (matches,) = Regurgitation().matches(Held([(0, "x"), (1, PASSAGE)], ["y", f"so {PASSAGE} it goes"]), [1])
    assert len(matches.features) == sum(25 - n + 1 for n in range(11, 21))
    assert set(matches.synthetic.tolist()) == {1}
    assert matches.per_user(2).tolist() == [0, len(matches.features)]


def test_rarity_counts_distinct_users_over_scattered_records():
    records = [(0, PASSAGE), (1, "x"), (0, PASSAGE), (2, f"y {PASSAGE}"), (0, PASSAGE), (2, PASSAGE)]
    one, two, three = Regurgitation().matches(Held(records, [PASSAGE]), KS)
    assert (len(one.features), len(three.features)) == (0, 0)
    assert len(two.features) == 105  # 15 + 14 + ... + 6
    assert (two.holders == [0, 2]).all()


def test_ngrams_do_not_cross_records_and_white_space_is_any():
    words = PASSAGE.split()
    apart = Held([(0, " ".join(words[:6])), (0, " ".join(words[6:12]))], [PASSAGE])
    assert len(Regurgitation().matches(apart, [1])[0].features) == 0
    lines = Held([(0, "\n\t".join(words[:11]))], [PASSAGE])
    assert list(Regurgitation().matches(lines, [1])[0].features) == [" ".join(words[:11])]


def test_ten_megabytes_in_one_cell():
    rng = np.random.default_rng(0)
    noise = " ".join(map(str, rng.integers(0, 5000, 1_900_000).tolist()))
    assert len(noise) > 9_000_000
    long = f"{noise} {PASSAGE} {noise}"
    for records, outputs in (([(0, long)], [PASSAGE]), ([(0, PASSAGE)], [long])):
        (matches,) = Regurgitation().matches(Held(records, outputs), [1])
        assert len(matches.features) == 105


def test_long_words_and_records_of_one_token():
    token = "x" * 1_000_000
    material = Held([(0, token), (1, ""), (2, "y"), (2, token)], ["", token, " \n "])
    one, two, _ = Regurgitation(1, 3).matches(material, KS)
    assert list(two.features) == [token]
    assert len(one.features) == 0


def test_a_copy_of_the_private_records_is_no_error():
    rng = np.random.default_rng(1)
    texts = [" ".join(map(str, rng.integers(0, 1000, 40).tolist())) for _ in range(300)]
    (matches,) = Regurgitation().matches(Held(list(enumerate(texts)), texts), [1])
    assert len(matches.features) == 300 * sum(40 - n + 1 for n in range(11, 21))
    assert matches.features[-1].split() == texts[-1].split()[-11:]
    assert [len(feature.split()) for feature in matches.features[:10]] == list(range(11, 21))


def test_memory_does_not_grow_with_what_only_private_records_hold():
    index = NgramIndex(np.array([1, 2, 3, 0], np.int32), 2, 3, 2)
    before = len(index._table.hashes)
    for user in range(50):
        index.add(np.array([1, 0, 3, 3, 1, 0] * 100, np.int32), np.full(600, user, np.int32))
    assert len(index._table.hashes) == before


@pytest.mark.parametrize(("n_min", "n_max"), [(0, 5), (5, 4), (-1, -1), (11, 20_000)])
def test_lengths_out_of_range(n_min, n_max):
    with pytest.raises(StudyError, match="n_min"):
        Regurgitation(n_min, n_max)


@pytest.mark.parametrize("ks", [[], [0], [2, -1]])
def test_k_out_of_range(ks):
    with pytest.raises(StudyError, match="at least one user"):
        Regurgitation().matches(Held([], []), ks)


def test_too_many_ngrams_to_number(monkeypatch):
    monkeypatch.setattr("coalmine.auditor.disclosure.ngrams._LIMIT", 100)
    with pytest.raises(DataError, match="n-grams"):
        Regurgitation(1, 20).matches(Held([(0, PASSAGE)], [PASSAGE]), [1])
