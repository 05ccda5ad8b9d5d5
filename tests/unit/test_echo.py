"""Canary's Echo: the n-gram model, the scores, the canaries."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import naive_echo

from coalmine.auditor.disclosure.echo import Normalisation, echo, normalised
from coalmine.auditor.disclosure.echo_canaries import Recipe, WordChain, make_canaries
from coalmine.auditor.disclosure.echo_counts import canary_grams, log_probability
from coalmine.protocol.errors import DataError, StudyError
from coalmine.protocol.privacy import Assurance

WORDS = st.lists(st.sampled_from("abcde"), min_size=1, max_size=9).map(" ".join)


@settings(derandomize=True, max_examples=150)
@given(
    st.lists(WORDS, min_size=1, max_size=5),
    st.lists(st.one_of(WORDS, st.just(""), st.just("zz a zz b")), min_size=1, max_size=8).filter(lambda t: any(t)),
    st.integers(1, 4),
    st.sampled_from([0.1, 1.0]),
)
def test_log_probabilities_are_those_of_dictionaries(canaries, texts, n, smoothing):
    found = log_probability(canary_grams(canaries, n), iter(texts), 7, smoothing)
    assert found == pytest.approx([naive_echo.log_probability(text, texts, n, 7, smoothing) for text in canaries])


def test_texts_may_come_in_any_number_of_pieces(monkeypatch):
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(list("abcdef"), 8)) for _ in range(50)]
    grams = canary_grams(texts[:5], 3)
    whole = log_probability(grams, texts, 6, 1.0)
    monkeypatch.setattr("coalmine.auditor.disclosure.echo_counts._TEXTS_AT_ONCE", 7)
    assert (log_probability(grams, texts, 6, 1.0) == whole).all()


def test_a_model_of_words_sums_to_one():
    texts = ["a b a c", "b a a", "c c c c a"]
    total = sum(
        math.exp(log_probability(canary_grams([f"a {word}"], 2), texts, 3, 1.0)[0]
                 - log_probability(canary_grams(["a"], 2), texts, 3, 1.0)[0])
        for word in "abc"
    )  # fmt: skip
    assert total == pytest.approx(1)


def test_normalised_by_probability_and_by_its_logarithm():
    own, references = np.array([-10.0, -20.0]), np.array([[-12.0, -20.0], [-14.0, -20.0]])
    by_probability = normalised(own, references, Normalisation.PROBABILITY)
    assert by_probability == pytest.approx([-10 - math.log((math.exp(-12) + math.exp(-14)) / 2), 0])
    assert normalised(own, references, Normalisation.LOG_PROBABILITY) == pytest.approx([1.3, 1.0])


def test_the_area_is_the_share_of_pairs_in_order():
    rng = np.random.default_rng(3)
    canaries = [" ".join(rng.choice(list("abcdefgh"), 12)) for _ in range(40)]
    member = np.arange(40) % 2 == 0
    sets = [[" ".join(rng.choice(list("abcdefgh"), 12)) for _ in range(30)] for _ in range(3)]
    sets[0] += [canaries[i] for i in range(0, 40, 4)]
    found = echo(canaries, member, lambda: sets[0], [lambda: sets[1], lambda: sets[2]], rng)
    vocabulary = 8
    naive = []
    for text in canaries:
        own, *others = (naive_echo.log_probability(text, texts, 2, vocabulary, 1.0) for texts in sets)
        naive.append(own - math.log(sum(map(math.exp, others)) / 2))
    assert found.scores == pytest.approx(naive)
    assert found.roc.auc == pytest.approx(naive_echo.auc(found.scores[member], found.scores[~member]))
    assert (found.members, found.non_members, found.references) == (20, 20, 2)
    rate = found.low[-1]  # 10 % of 20: two non-members may lie above
    threshold = sorted(found.scores[~member])[-3]
    assert rate.tpr == np.mean(found.scores[member] > threshold)
    assert rate.lower <= rate.tpr <= rate.upper


def test_an_unknown_split_proves_nothing():
    rng = np.random.default_rng(0)
    canaries = [" ".join(rng.choice(list("abcdefgh"), 12)) for _ in range(20)]
    member = np.arange(20) < 10
    found = echo(canaries, member, lambda: canaries, [lambda: canaries[:5]], rng, randomised=False)
    assert found.assurance is Assurance.HEURISTIC


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"canaries": ["a"] * 12, "member": np.arange(12) < 3}, "3 canaries were put in"),
        ({"references": []}, "no reference"),
        ({"synthetic": lambda: ["", " "]}, "has no word"),
        ({"canaries": ["a"] * 23 + [" "]}, "no word"),
        ({"member": np.ones(3, bool)}, "24 canaries, 3 answers"),
    ],
)
def test_what_cannot_be_audited_is_said(change, says):
    good = {"canaries": ["a b"] * 24, "member": np.arange(24) < 12, "synthetic": lambda: ["a b"],
            "references": [lambda: ["b a"]]}  # fmt: skip
    with pytest.raises(DataError, match=says):
        echo(**{**good, **change}, generator=np.random.default_rng(0))
    for bad in ({"n": 0}, {"smoothing": 0.0}):
        with pytest.raises(StudyError):
            echo(**good, generator=np.random.default_rng(0), **bad)


PUBLIC = [
    f"{who} {does} the {what} near {who} and the {what}"
    for who in ("anna", "bert", "carl", "dora")
    for does in ("sees", "hears", "takes", "leaves")
    for what in ("dog", "cat", "tree", "boat", "ship")
]


def test_canaries_begin_like_records_and_end_as_surprising_as_asked():
    chain = WordChain(PUBLIC)
    records = [f"record {number} begins here and goes on" for number in range(50)]
    recipe = Recipe(prefix=3, suffix=12, perplexity=8.0, band=0.1)
    made = make_canaries(records, 20, chain, recipe, np.random.default_rng(1))
    assert made == make_canaries(records, 20, chain, recipe, np.random.default_rng(1))
    assert all(text.startswith(" ".join(records[source].split()[:3])) for text, source in made)
    made = [text for text, _ in made]
    assert len({" ".join(text.split()[:3]) for text in made}) == 20
    beginnings = {" ".join(text.split()[:3]) for text in records}
    for text in made:
        words = text.split()
        assert " ".join(words[:3]) in beginnings
        assert len(words) == 15
        surprise = 0.0
        for last, word in itertools.pairwise(words[2:]):
            surprise -= math.log(chain.next_word(last)[chain._words[word]])
        assert 7.2 <= math.exp(surprise / 12) <= 8.8


def test_a_chain_is_a_distribution():
    chain = WordChain(PUBLIC, mix=0.2)
    for word in ("the", "anna", "never seen"):
        shares = chain.next_word(word)
        assert shares.sum() == pytest.approx(1)
        assert (shares > 0).all()
    assert chain.next_word("the")[chain._words["boat"]] > chain.next_word("anna")[chain._words["boat"]]


def test_canaries_that_cannot_be_made_are_refused():
    chain, rng = WordChain(PUBLIC), np.random.default_rng(0)
    with pytest.raises(DataError, match="2 are there"):
        make_canaries(["a b c", "d e f", "a b g", "h"], 5, chain, Recipe(2, 3), rng)
    with pytest.raises(DataError, match="no suffix had a perplexity"):
        make_canaries(["a b c"], 1, chain, Recipe(2, 30, perplexity=1e6), rng)
    with pytest.raises(StudyError):
        Recipe(prefix=0)
