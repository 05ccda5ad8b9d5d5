"""The bank and its commitment: unique candidates, and a digest that binds everything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coalmine.protocol.bank import Bank, Commitment, commit, verify
from coalmine.protocol.errors import BankError, CommitmentMismatch

TEXT = st.text("ab\x00é", min_size=1, max_size=4)
BANKS = st.lists(st.tuples(TEXT, st.text("ab\x00", max_size=3)), min_size=1, max_size=4, unique_by=lambda pair: pair[0])
BANKS = st.builds(lambda pairs, encoder: Bank(*zip(*pairs, strict=True), encoder), BANKS, TEXT)
BASE = Bank(("one", "two", "three"), ("x", "", "z"), "encoder")


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        ((), (), "empty"),
        (("a", "b", "a"), ("", "", ""), r"candidate 2: .*candidate 0 occurs again"),
        (("a", " \n"), ("", ""), "candidate 1: a candidate is blank"),
        (("a", "b"), ("",), "2 texts but 1 labels"),
    ],
)
def test_what_is_no_bank_is_refused(texts, labels, message):
    with pytest.raises(BankError, match=message):
        Bank(texts, labels, "encoder")


def test_texts_that_differ_in_case_or_space_are_different():
    assert len(Bank(("a", "A", "a "), ("", "", ""), "e")) == 3


def test_an_error_does_not_repeat_the_text():
    with pytest.raises(BankError) as caught:
        Bank(("secret words",) * 2, ("", ""), "e")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "other",
    [
        Bank(("two", "one", "three"), ("x", "", "z"), "encoder"),
        Bank(("two", "one", "three"), ("", "x", "z"), "encoder"),
        Bank(("one", "two", "threE"), ("x", "", "z"), "encoder"),
        Bank(("onet", "wo", "three"), ("x", "", "z"), "encoder"),
        Bank(("one", "two", "three"), ("x", "z", ""), "encoder"),
        Bank(("one", "two", "threex"), ("", "", "z"), "encoder"),
        Bank(("one", "two", "three"), ("x", "", "z"), "encoder2"),
        Bank(("one", "two"), ("x", ""), "encoder"),
        Bank(("one", "two", "three", "four"), ("x", "", "z", ""), "encoder"),
    ],
)
def test_every_change_changes_the_commitment_and_is_refused(other):
    assert commit(other).digest != commit(BASE).digest
    with pytest.raises(CommitmentMismatch, match="refuse to vote"):
        verify(other, commit(BASE))


@given(BANKS, BANKS)
def test_two_banks_share_a_commitment_only_if_they_are_the_same(one, other):
    assert (commit(one) == commit(other)) == (one == other)


@given(BANKS)
def test_a_bank_fits_its_own_commitment(bank):
    verify(bank, commit(bank))
    assert commit(bank) == commit(Bank(bank.texts, bank.labels, bank.encoder_id))
    assert commit(bank).size == len(bank)


def test_the_digest_is_the_published_one():
    """Frozen: clients of another version must compute the same."""
    assert commit(BASE).digest == "a2a35b38ef452ff5e033dbe414177cbdf6be097cd353537712b145435f9e5466"


def test_a_right_digest_with_a_wrong_size_is_refused():
    with pytest.raises(CommitmentMismatch):
        verify(BASE, Commitment(commit(BASE).digest, 4))


def test_probes_replace_texts_and_keep_labels():
    planted = BASE.replace({1: "probe"})
    assert (planted.texts, planted.labels, planted.encoder_id) == (("one", "probe", "three"), BASE.labels, "encoder")
    assert BASE.replace({}) == BASE
    with pytest.raises(BankError, match="occurs again"):
        BASE.replace({1: "three"})
