"""Users, their table and its digest."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from coalmine.clients.data.users import User, UserTable
from coalmine.protocol.errors import DataError

TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
CELLS = st.lists(st.tuples(TEXT, st.sampled_from(["", "a", "b"])), max_size=4)
TABLES = st.dictionaries(TEXT.filter(str.strip), CELLS, min_size=1, max_size=5)


def table(content, source="a test"):
    return UserTable(
        tuple(
            User(id, tuple(text for text, _ in cells), tuple(label for _, label in cells))
            for id, cells in content.items()
        ),
        source,
    )


@given(TABLES, TABLES)
def test_digests_differ_exactly_when_the_content_differs(one, other):
    assert (table(one).digest == table(other).digest) == (one == other)


@given(TABLES, st.randoms(use_true_random=False))
def test_neither_the_order_of_users_nor_the_source_counts(content, random):
    shuffled = list(content.items())
    random.shuffle(shuffled)
    assert table(dict(shuffled), "elsewhere").digest == table(content).digest


@given(TABLES, st.data())
def test_the_order_of_records_counts(content, data):
    id = data.draw(st.sampled_from(sorted(content)))
    turned = content[id][::-1]
    assume(turned != content[id])
    assert table({**content, id: turned}).digest != table(content).digest


@given(TABLES, st.data())
def test_one_changed_cell_changes_the_digest(content, data):
    id = data.draw(st.sampled_from(sorted(content)))
    cells = list(content[id])
    assume(cells)
    place = data.draw(st.integers(0, len(cells) - 1))
    text, label = cells[place]
    cells[place] = data.draw(st.sampled_from([(text + "x", label), (text, label + "x"), (text + label, "x" + label)]))
    assert table({**content, id: cells}).digest != table(content).digest


def test_text_that_moves_across_a_boundary_changes_the_digest():
    digests = {
        table({"u": [("ab", ""), ("c", "")]}).digest,
        table({"u": [("a", ""), ("bc", "")]}).digest,
        table({"u": [("abc", "")]}).digest,
        table({"uab": [("c", "")]}).digest,
        table({"u": [("ab", "c")]}).digest,
    }
    assert len(digests) == 5


def test_the_number_of_dropped_records_is_no_content():
    plain = table({"u": [("text", "")]})
    assert replace(plain, dropped=3).digest == plain.digest


def test_labels_pair_with_records():
    with pytest.raises(DataError, match="2 records but 1 labels"):
        User("u", ("a", "b"), ("",))


def test_a_blank_id_is_refused():
    with pytest.raises(DataError, match="blank"):
        User(" \t", ("a",), ("",))


def test_an_id_occurs_once():
    with pytest.raises(DataError, match="same id"):
        UserTable((User("u", ("a",), ("",)), User("u", ("b",), ("",))), "a test")
