from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coalmine.protocol.errors import ModelError
from coalmine.protocol.randomness import Purpose, stream
from coalmine.server.generate.grammar import LISTS, REGISTERS, Draw, expand
from coalmine.server.generate.inflection import gerund, past, plural, with_article
from coalmine.server.generate.judge import same
from coalmine.server.generate.rules import RulesGenerator
from coalmine.server.generate.vocabulary import GROUPS, TOPICS

CHAT = [
    "ok",
    "lol thanks",
    "yeah it is",
    "sudo apt-get install foo",
    "is XP installed on the other HDD?",
    "YES WE DO!",
    "i'm assuming you mean microsoft ones?",
    "It was recommended in my last annual message that our Indian system be remodeled.",
]


def test_samples_are_distinct_and_of_sensible_length() -> None:
    texts = RulesGenerator().sample(["2017", "positive", ""] * 1000, seed=5)
    assert len({same(text) for text in texts}) > 0.985 * len(texts)
    lengths = [len(text.split()) for text in texts]
    assert min(lengths) >= 4
    assert max(lengths) <= 30
    assert sum(length < 9 for length in lengths) > 200
    assert sum(length > 20 for length in lengths) > 200
    assert not any("{" in text or "}" in text for text in texts)


def test_same_request_same_texts_whatever_else_is_asked() -> None:
    generator = RulesGenerator()
    alone = generator.sample(["b"], 3)
    assert RulesGenerator().sample(["a", "b", "c"], 3)[1] == alone[0]
    assert generator.sample(["b", "b"], 3)[0] == alone[0]
    assert generator.sample(["b", "b"], 3)[1] != alone[0]
    assert generator.sample(["b"], 4) != alone


def test_a_label_steers_the_mixture() -> None:
    words = {word for thing in TOPICS["cooking"].things for word in thing.split()}

    def share(label: str) -> float:
        texts = RulesGenerator().sample([label] * 400, 0)
        return sum(bool(words & set(text.lower().replace(",", " ").split())) for text in texts) / len(texts)

    assert share("cooking") > 2 * share("diplomacy")


def test_a_topic_keeps_to_itself() -> None:
    nouns = {agent for topic in TOPICS.values() if topic.group != "affairs" for agent in topic.agents}
    nouns -= {agent for topic in TOPICS.values() if topic.group == "affairs" for agent in topic.agents}
    texts = RulesGenerator("affairs").sample([""] * 200, 0)
    assert not any(f" {noun} " in text for noun in nouns for text in texts if len(noun) > 8)
    assert "affairs" in GROUPS


def test_unknown_topic_names_the_nearest() -> None:
    with pytest.raises(ModelError, match="'cooking'"):
        RulesGenerator("coking")


@pytest.mark.parametrize("source", CHAT)
def test_many_distinct_rewordings_are_reachable(source: str) -> None:
    texts = RulesGenerator().paraphrase([source] * 64, seed=1)
    assert len({same(text) for text in texts}) >= 16
    assert same(source) not in {same(text) for text in texts}


@settings(max_examples=150)
@given(st.text(max_size=80), st.integers(0, 2**32))
def test_any_text_is_reworded_and_never_verbatim(source: str, seed: int) -> None:
    (text,) = RulesGenerator().paraphrase([source], seed)
    if source.split():
        assert text.strip()
        assert same(text) != same(source)
    else:
        assert text == ""


def test_literals_and_names_are_kept() -> None:
    source = "edit /etc/grub.conf on Ubuntu 16.04 with apt-get from the United States"
    for text in RulesGenerator().paraphrase([source] * 50, 0):
        for kept in ("/etc/grub.conf", "Ubuntu 16.04", "apt-get", "United States"):
            assert kept in text


def test_clauses_change_places() -> None:
    texts = RulesGenerator().paraphrase(["if the disk is full, you cannot save the file"] * 60, 2)
    assert any(" if the " in text for text in texts)


def test_variations_take_words_from_the_examples() -> None:
    groups = [["zebra crossing ahead of the quagga", "a zebra and a quagga walk by the okapi"]] * 30
    texts = RulesGenerator().vary(groups, 7)
    assert len(set(texts)) > 20
    assert sum(any(word in text.lower() for word in ("zebra", "quagga", "okapi")) for text in texts) > 20
    assert all(RulesGenerator().vary([[], ["  "]], 0))


def test_every_template_expands() -> None:
    topic = TOPICS["shell"]
    for templates in (*REGISTERS.values(), *LISTS.values()):
        for template in templates:
            text = expand(template, topic, TOPICS["love"], Draw(stream(0, Purpose.GENERATOR)))
            assert "{" not in text


def test_word_forms() -> None:
    assert [past(verb) for verb in ("write", "back up", "carry", "plan", "bake")] == [
        "wrote",
        "backed up",
        "carried",
        "planned",
        "baked",
    ]
    assert [gerund(verb) for verb in ("run", "bake", "try on", "feed")] == ["running", "baking", "trying on", "feeding"]
    assert [plural(noun) for noun in ("pair of shoes", "city", "search engine box")] == [
        "pairs of shoes",
        "cities",
        "search engine boxes",
    ]
    assert [with_article(noun) for noun in ("usb key", "oven", "mp3", "union")] == [
        "a usb key",
        "an oven",
        "an mp3",
        "a union",
    ]


def test_the_id_names_the_rules_and_their_topic() -> None:
    assert RulesGenerator().id == RulesGenerator().id
    assert RulesGenerator("cooking").id.startswith("rules/cooking/")
