"""Counting whatever an extraction finds, and the documented example of a class of one's own."""

import re
import weakref
from pathlib import Path

import pytest
from fakes.material import Held
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import naive_holders

from coalmine.auditor.disclosure.counted import Counted
from coalmine.protocol.errors import StudyError

TEXT = st.lists(st.sampled_from("abcdef"), max_size=6).map(" ".join)
EXAMPLE = Path(__file__).parents[2] / "docs" / "disclosure-classes.md"


@settings(max_examples=150)
@given(st.lists(st.tuples(st.integers(0, 5), TEXT), max_size=15), st.lists(TEXT, max_size=8))
def test_equals_sets(records, outputs):
    found = Counted("words", str.split).matches(Held(records, outputs), [3, 1, 2])
    assert [matches.k for matches in found] == [3, 1, 2]
    for matches in found:
        expected = naive_holders.held_by(records, outputs, str.split, matches.k)
        assert matches.holders.shape == (len(expected), matches.k)
        assert matches.synthetic.tolist() == sorted(first for _, first in expected.values())
        assert expected == {
            feature: (tuple(users), first)
            for feature, users, first in zip(
                matches.features, matches.holders.tolist(), matches.synthetic.tolist(), strict=True
            )
        }


def test_the_order_of_features_does_not_depend_on_the_order_in_which_they_are_found():
    material = Held([(0, "c b a"), (1, "d")], ["d", "a b c"])
    forwards, backwards = Counted("w", str.split), Counted("w", lambda text: reversed(text.split()))
    (first,), (second,) = forwards.matches(material, [1]), backwards.matches(material, [1])
    assert list(first.features) == list(second.features) == ["d", "a", "b", "c"]


def test_private_records_are_read_once_and_let_go():
    alive, most = weakref.WeakSet(), []

    class Record:
        def __init__(self, user):
            self.user, self.text = user % 7, "a b"

    class Stream(Held):
        def private(self):
            for user in range(1000):
                alive.add(record := Record(user))
                yield record
                most.append(len(alive))

    (matches,) = Counted("w", str.split).matches(Stream([], ["a"]), [7])
    assert list(matches.features) == ["a"]
    assert len(most) == 1000
    assert max(most) <= 2


def test_nothing_in_common_is_no_error():
    for records, outputs in (([], []), ([(0, "a")], []), ([], ["a"]), ([(0, "a")], ["b"]), ([(0, "")], [""])):
        (matches,) = Counted("w", str.split).matches(Held(records, outputs), [2])
        assert matches.holders.shape == (0, 2)
        assert matches.per_user(1).tolist() == [0]


def test_k_out_of_range():
    with pytest.raises(StudyError, match="at least one user"):
        Counted("w", str.split).matches(Held([], []), [1, 0])


def test_the_documented_class_works_as_its_page_says(monkeypatch, tmp_path, capsys):
    page = EXAMPLE.read_text(encoding="utf-8")
    code, call = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", page, flags=re.DOTALL)
    names = {}
    exec(compile(code, str(EXAMPLE), "exec"), names)
    exact_values = names["exact_values"]
    assert exact_values.name in page
    material = Held(
        [(0, "age 41, balance 10482.37"), (1, "balance 10482.370, rate 5"), (2, "1,204,511.09 owed"), (3, "rate 5")],
        ["balance: 1204511.09", "balance: 10482.37, rate 5"],
    )
    one, two = exact_values.matches(material, [1, 2])
    assert (list(one.features), one.holders.tolist(), one.synthetic.tolist()) == (["1204511.09"], [[2]], [0])
    assert (list(two.features), two.holders.tolist()) == (["10482.37"], [[0, 1]])
    assert printed.split() == list(names["exact_numbers"](names["EXAMPLE"]))
    monkeypatch.chdir(tmp_path)
    exec(compile(call, str(EXAMPLE), "exec"), names)
    told = capsys.readouterr().out
    assert told.startswith("exact values - leaks\n15 matches")
