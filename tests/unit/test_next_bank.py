"""The next bank: survivors and probes in place, every other place filled anew within its label."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coalmine.protocol.bank import Bank
from coalmine.protocol.errors import BankError, GeneratorError
from coalmine.server.generate.fake import Answer, FakeGenerator
from coalmine.server.generate.judge import same
from coalmine.server.generate.rules import RulesGenerator
from coalmine.server.next_bank import next_bank
from coalmine.server.select import Survivors, select

SIZE = 60
LABELS = tuple("abb"[place % 3] for place in range(SIZE))
BANK = Bank(tuple(f"old text {place} here" for place in range(SIZE)), LABELS, "hash")
PROBES = np.array([5, 17, 30])


def survivors(seed=0, share=0.1):
    return select(np.random.default_rng(seed).normal(size=SIZE), LABELS, PROBES, share=share)


def breed(generator=None, chosen=None, **more):
    return next_bank(BANK, chosen or survivors(), generator or FakeGenerator(), 7, 2, **more)


@settings(max_examples=25)
@given(st.integers(0, 1000), st.sampled_from([0.05, 0.3, 1.0]), st.integers(1, 5))
def test_survivors_and_probes_stay_and_the_rest_is_new(seed, share, examples):
    chosen = survivors(seed, share)
    bred = breed(chosen=chosen, examples=examples).bank
    assert (len(bred), bred.labels, bred.encoder_id) == (SIZE, LABELS, "hash")
    stay = set(chosen.candidates) | set(PROBES)
    for place in range(SIZE):
        assert (bred.texts[place] == BANK.texts[place]) == (place in stay)
    assert len({same(text) for text in bred.texts}) == SIZE


def test_a_text_is_written_after_survivors_of_its_label_each_in_its_turn():
    generator, chosen = FakeGenerator(), survivors(share=0.3)
    breed(generator, chosen, examples=3)
    parents = {BANK.texts[place]: LABELS[place] for place in chosen.candidates}
    for item in generator.asked:
        assert len(set(item.prompt)) == 3
        assert len({parents[text] for text in item.prompt}) == 1
    led = np.unique([item.prompt[0] for item in generator.asked if parents[item.prompt[0]] == "b"], return_counts=True)
    assert set(led[0]) == {text for text, label in parents.items() if label == "b"}
    assert np.ptp(led[1]) <= 1


def test_a_single_survivor_is_enough():
    bred = breed(RulesGenerator(), survivors(share=0.01))
    assert len(set(bred.bank.texts)) == SIZE
    assert bred.tally.asked >= SIZE - 2 - len(PROBES)


def test_it_depends_on_seed_round_and_survivors_alone():
    first = breed(RulesGenerator()).bank
    assert first == breed(RulesGenerator()).bank
    assert first != next_bank(BANK, survivors(), RulesGenerator(), 8, 2).bank
    assert first != next_bank(BANK, survivors(), RulesGenerator(), 7, 3).bank
    assert first != breed(RulesGenerator(), survivors(1)).bank


def test_unwanted_texts_are_replaced_and_counted():
    schedule = (Answer.GOOD, Answer.BLANK, Answer.REPEAT, Answer.REFUSAL)
    done = []
    bred = breed(FakeGenerator(schedule), progress=done.append)
    wanted = SIZE - len(PROBES) - len(survivors().candidates)
    assert sum(done) == wanted
    tally = bred.tally
    assert min(tally.blank, tally.repeated, tally.refused) > 0
    assert tally.asked == wanted + tally.blank + tally.repeated + tally.refused


def test_excluded_texts_do_not_come_out():
    usual = set(breed().bank.texts) - set(BANK.texts)
    unwanted = {text.upper() for text in sorted(usual)[:10]}
    bred = breed(exclude=unwanted).bank
    assert not {same(text) for text in unwanted} & {same(text) for text in bred.texts}
    assert len(bred) == SIZE


def test_too_few_texts_say_how_many_of_which_label():
    chosen = survivors(share=0.01)
    (barren,) = (BANK.texts[place] for place in chosen.candidates if LABELS[place] == "b")
    missing = sum(label == "b" for label in LABELS) - 1 - sum(LABELS[place] == "b" for place in PROBES)
    with pytest.raises(
        GeneratorError, match=f"{missing} of 55 new texts are missing: {missing} of label 'b' "
    ) as caught:
        breed(FakeGenerator(barren=frozenset([barren])), chosen, attempts=2)
    assert caught.value.exit_code == 2
    assert barren not in str(caught.value)
    with pytest.raises(GeneratorError, match=r"of label 'a', \d+ of label 'b'"):
        breed(FakeGenerator((Answer.REPEAT,)), chosen, attempts=2)


def test_what_was_delivered_is_not_counted_as_missing():
    with pytest.raises(GeneratorError, match="53 of 55 new texts are missing"):
        breed(FakeGenerator((Answer.REPEAT,)), survivors(share=0.01), attempts=2)


@pytest.mark.parametrize(
    ("candidates", "message"), [([0, 60], "outside a bank of 60"), ([0, 3], "no candidate of label 'b' survived")]
)
def test_survivors_of_another_bank_are_refused(candidates, message):
    with pytest.raises(BankError, match=message):
        breed(chosen=Survivors(np.array(candidates), np.ones(2), PROBES))


def test_a_bank_of_survivors_only_stays():
    every = survivors(share=1.0)
    bred = breed(FakeGenerator((Answer.BLANK,)), every)
    assert bred.bank == BANK
    assert bred.tally.asked == 0
