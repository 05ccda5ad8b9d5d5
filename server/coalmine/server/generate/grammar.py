"""The grammar of the rules: registers of sentences with slots, and their expansion.

Slots: {a} who, {t} thing, {at} a thing with its article, {ts} things, {v} verb, {vd} past, {vd_perfect} participle,
{vg} -ing, {q} quality, {p} place; the same with a 2 from a second topic; every other slot is one of the lists below,
whose entries may hold slots themselves.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from coalmine.server.generate.inflection import gerund, past, plural, with_article
from coalmine.server.generate.topic import Topic

REGISTERS: dict[str, tuple[str, ...]] = {
    "chat": (
        "{hello} {ask}",
        "i {vd} the {t} {p}, {but} it is {still} {q}",
        "{wow} the {t} is {q} {still}",
        "{maybe} you could {v} the {t} instead",
        "just {v} it {p}",
        "did you {v} the {ts} {p}?",
        "no idea, {maybe} the {t} is {q}?",
        "{a} said to {v} the {t} first",
        "ok so now the {t} is {q}, {what_next}",
        "{name}: you need {at} for that, not {at2}",
        "i think {a} {vd} my {t} {time}",
        "thanks {name}, the {q} {t} works {time}",
        "{wow} never {vd} {at} before",
        "it was {a}, {trust_me}",
        "where do i find the {q} {t}?",
        "that {t} is {q}, {v} {another} one",
        "{feel} because of the {t}",
        "same {t} here, {number} times {time}",
    ),
    "diary": (
        "{feel} because {a} {vd} my {t} {time}",
        "i {really} want to {v} {at} {p}",
        "so {q} {time}, {gonna} {v} some {ts} {p}",
        "{time} {a} {vd} {at} and i {feeling}",
        "can't wait to {v} the {t} with {name}",
        "just got back from {vg} the {t}, {feel}",
        "i miss {vg} {ts} {p}",
        "is it wrong that i {v} every {t} {p}?",
        "{name} and i {vd} {ts} {time}, {opinion}",
        "no more {ts} for me, {gonna} {v} {at2} instead",
        "{hello} did {a} really {v} the {q} {t}?",
        "woke up {time} and {a} had {vd_perfect} the {t}",
        "my {t} is {q} and i {feeling}",
    ),
    "speech": (
        "{solemn} {a} {have} {vd_perfect} the {q} {t}, and {duty}",
        "we must {v} every {t} that remains {q} {p}",
        "I recommend that {a} be authorised to {v} the {t} {p}",
        "the {ts} which {a} {vd} {p} have proved {q}",
        "no nation can {v} its {ts} while {a2} {vd2} the {t2}",
        "{time_formal} more than {number} {ts} were {vd_perfect} {p}",
        "let us {v} the {t}, {v2} the {t2}, and {duty_short}",
        "it is the duty of {a} to {v} {ts} wherever they are {q}",
        "{solemn} the question of the {t} deserves your {q} attention",
        "tonight I ask {a} to {v} {at} for every family",
        "our {ts} are {q}, our {ts2} are {q2}, and {duty}",
        "the report of {a} shows that {number} {ts} have been {vd_perfect} since the last session",
        "we will not {v} the {t} {p}, because {because_formal}",
    ),
    "review": (
        "{opinion_start} the {t} was {q} and {a} was {attitude}",
        "we came {p} for {at}, {but} the {t2} was {q2}",
        "the {q} {t} alone is worth {number} stars",
        "{a} {vd} our {t} {p} and never {sorry}",
        "{number} dollars for {at}? {opinion}",
        "I have been going {p} for {number} years and the {t} is always {q}",
        "do not {v} the {t} here, it is {q} and {opinion_adj}",
        "if you {v} {at}, ask for {a}, {opinion}",
        "the {ts} are {q}, the {ts2} are {q2}, {opinion}",
        "first time {vg} {at} {p}: {opinion}",
        "{a} took the time to {v} the {t} and {bonus}",
    ),
    "question": (
        "how do I {v} {at} {p}?",
        "why would {a} {v} the {t} {time}?",
        "does anyone know if the {t} is {q} {p}?",
        "which {t} should I {v}, the {q} one or the {q2} one?",
        "what happens when {a} and {a2} {v} the same {t}?",
        "is {at} better than {at2} {p}?",
        "who {vd} the {q} {t} {time}?",
        "can {a} {v} {ts} without {at2}?",
        "have you ever {vd_perfect} {at} {p}?",
        "when will the {t} be {q} {again}?",
    ),
    "instruction": (
        "first {v} the {t}, then {v} the {q} {t} {p}",
        "{v} the {ts} {p} before you {v2} the {t2}",
        "never {v} {at} {time} unless {a} is {p}",
        "to {v} {at}, {v} the {t} and wait {number} minutes",
        "make sure the {t} is not {q}, otherwise {v} it {again}",
        "please {v} the {t} and tell {a} about it",
        "keep the {q} {ts} {p} and {v} the rest",
        "use {at} to {v} the {t}, it takes {number} seconds",
    ),
    "news": (
        "{a} {vd} {number} {ts} {p} {time}",
        "{a} {announced} that the {q} {t} will be {vd_perfect} {p}",
        "after {number} days {a} finally {vd} the {t}",
        "{a} and {a2} clash over the {q} {t} {p}",
        "the {t} {p} is {q}, according to {a}",
        "one {q} {t} was found {p}, and {a} wants to {v} it",
        "{number} people {vd} the {t} while {a} {vd2} the {t2}",
    ),
    "story": (
        "when {a} {vd} the {t}, {name} was {q} and {feeling_past}",
        "{name} looked at the {q} {t} {p} and said nothing",
        "there was once {at} that {a} could not {v}",
        "'{wow_story}', said {name}, 'the {t} is {q}!'",
        "{name} {vd} the {t} {p}, and {a} {vd} {at}",
        "they kept {vg} the {ts} until the {t2} was {q2}",
        "years later {name} still remembered the {q} {t} {p}",
    ),
}  # fmt: skip

LISTS: dict[str, tuple[str, ...]] = {
    "hello": (
        "hi,", "hey,", "hello all,", "guys,", "quick question:", "morning,", "um,", "hey {name},", "so", "ok", "well,",
    ),
    "ask": (
        "how do i {v} the {t} {p}?",
        "can someone help me {v} {at}?",
        "has anyone {vd_perfect} {at}?",
        "what is {at} for?",
        "my {t} is {q}, any ideas?",
        "is there a way to {v} the {q} {t}?",
    ),
    "wow": (
        "wow,", "lol,", "omg", "haha,", "argh,", "hmm,", "nope,", "yay,", "ugh,", "great,", "yeah,", "damn,", "oh no,",
    ),
    "wow_story": ("By my honour", "Hush", "Look", "Good heavens", "Come quickly", "Wait", "Alas"),
    "maybe": ("maybe", "perhaps", "i guess", "probably", "or else", "i suppose", "if you ask me"),
    "still": ("still", "again", "now", "really", "completely", "a bit", "kind of", "way too"),
    "again": ("again", "at last", "for good", "once more", "any time soon"),
    "another": ("another", "a better", "a cheaper", "the other", "a new"),
    "what_next": (
        "what next?", "now what", "any ideas?", "that was easy", "i give up", "thanks everyone", "let me reboot",
    ),
    "trust_me": ("trust me", "i swear", "lol", "as always", "not me", "and nobody else", "believe it or not"),
    "but": ("but", "and", "although", "yet", "and somehow"),
    "really": ("really", "just", "so", "desperately", "do not", "secretly", "always"),
    "gonna": ("gonna", "going to", "trying to", "about to", "too tired to", "off to", "afraid to"),
    "feel": (
        "so happy", "feeling sick", "really sad", "bored out of my mind", "super excited", "a bit worried",
        "so tired",
        "heartbroken", "angry again", "in a good mood", "stressed", "proud", "jealous", "lonely", "relieved",
    ),
    "feeling": (
        "love it", "cannot stop laughing", "feel awful", "want to cry", "feel so lucky", "am scared", "do not care",
        "hate everything", "need a hug", "feel great", "am confused", "wish you were here",
    ),
    "feeling_past": ("laughed", "wept", "kept silent", "ran away", "fell asleep", "trembled", "forgave everyone"),
    "opinion": (
        "best day ever", "never again", "highly recommended", "what a waste", "totally worth it", "not bad at all",
        "a complete disaster", "we will be back", "five stars", "such a rip off", "simply perfect", "just average",
    ),
    "opinion_start": (
        "Honestly,", "Sadly,", "Overall,", "To our delight,", "As usual,", "Unfortunately,", "For the price,", "Wow,",
    ),
    "opinion_adj": ("overpriced", "unsafe", "a joke", "not worth it", "a gamble", "outdated"),
    "attitude": (
        "polite", "rude", "very patient", "nowhere to be found", "attentive", "clueless", "a pleasure", "slow",
    ),
    "sorry": ("apologised", "called back", "smiled", "gave a refund", "looked up", "charged us", "explained why"),
    "bonus": ("gave us a discount", "answered every question", "even smiled", "did not rush", "saved our evening"),
    "solemn": (
        "Fellow citizens,", "I am happy to report that", "It is with regret that I say", "My fellow Americans,",
        "Under these circumstances", "In the judgment of the Executive", "Let me be clear:", "As you know,",
    ),
    "have": ("will have", "may have", "should have", "must have"),
    "duty": (
        "the work is not finished", "we owe it to our children", "the State of our Union is strong",
        "peace depends on it",
        "Congress should act without delay", "the people demand no less", "I commend it to your consideration",
        "the revenue will suffice", "history will judge us", "no citizen may be left behind",
        "our enemies take notice",
    ),
    "duty_short": ("keep the peace", "move forward together", "pay our debts", "finish the job", "honor our word"),
    "because_formal": (
        "the Constitution forbids it", "our credit is at stake", "justice requires patience", "the cost is too high",
        "free people deserve better", "our treaties are sacred", "the farmers cannot bear it",
    ),
    "announced": ("announced", "denied", "confirmed", "hinted", "promised", "warned", "reported"),
    "time": (
        "today", "yesterday", "last night", "this week", "tomorrow", "on Sunday", "all day", "again", "last summer",
        "at noon", "in the evening", "right now", "for hours", "every morning", "since Tuesday", "next month",
    ),
    "time_formal": (
        "During the past year", "Since the adjournment of Congress", "In the last decade",
        "Within a single generation",
        "At the close of the war", "Over the next five years", "From the foundation of the Government",
    ),
    "number": (
        "two", "three", "5", "seven", "10", "a dozen", "twenty", "40", "a hundred", "250", "several", "a thousand",
        "64",
    ),
    "name": (
        "Anna", "Jamal", "Kenji", "Sofia", "Omar", "Lucy", "Pedro", "Ingrid", "Rosalind", "Mike", "Priya", "Tom",
        "Fatima",
        "Dave", "Chloe", "Marcus", "Elena", "Hugh", "Nadia", "Ben",
    ),
}  # fmt: skip

_SLOT = re.compile(r"\{(\w+)\}")
_IRREGULAR_PERFECT = {
    "beat": "beaten", "bit": "bitten", "broke": "broken", "chose": "chosen", "drank": "drunk", "drove": "driven",
    "ate": "eaten", "forgot": "forgotten", "forgave": "forgiven", "gave": "given", "went": "gone", "hid": "hidden",
    "overtook": "overtaken", "rewrote": "rewritten", "ran": "run", "sang": "sung", "stole": "stolen", "took": "taken",
    "wore": "worn", "withdrew": "withdrawn", "wrote": "written",
}  # fmt: skip


@dataclass
class Draw:
    """Choices from one random stream, drawn in blocks (a call per choice would take most of the time)."""

    rng: np.random.Generator

    def __post_init__(self) -> None:
        self._block: Iterator[float] = iter(())

    def uniform(self) -> float:
        """The next number in [0, 1)."""
        for value in self._block:
            return value
        self._block = iter(self.rng.random(48).tolist())
        return next(self._block)

    def of(self, choices: tuple[str, ...]) -> str:
        """One of the choices, all alike."""
        return choices[int(self.uniform() * len(choices))]

    def index(self, cumulative: Sequence[float]) -> int:
        """An index, given cumulative weights that end at their total."""
        return bisect_right(cumulative, self.uniform() * cumulative[-1])


def expand(template: str, main: Topic, other: Topic, draw: Draw) -> str:
    """Fill every slot of a template."""

    def fill(match: re.Match[str]) -> str:
        slot = match[1]
        topic = other if slot.endswith("2") else main
        known = _FORMS.get(slot.removesuffix("2"))
        return known(topic, draw) if known else _SLOT.sub(fill, draw.of(LISTS[slot]))

    return _SLOT.sub(fill, template)


@cache
def perfect(verb: str) -> str:
    """The past participle of a base form."""
    head, _, particle = past(verb).partition(" ")
    return " ".join(filter(None, (_IRREGULAR_PERFECT.get(head, head), particle)))


_FORMS: dict[str, Callable[[Topic, Draw], str]] = {
    "a": lambda topic, draw: draw.of(topic.agents),
    "t": lambda topic, draw: draw.of(topic.things),
    "at": lambda topic, draw: with_article(draw.of(topic.things)),
    "ts": lambda topic, draw: plural(draw.of(topic.things)),
    "v": lambda topic, draw: draw.of(topic.verbs),
    "vd": lambda topic, draw: past(draw.of(topic.verbs)),
    "vd_perfect": lambda topic, draw: perfect(draw.of(topic.verbs)),
    "vg": lambda topic, draw: gerund(draw.of(topic.verbs)),
    "q": lambda topic, draw: draw.of(topic.qualities),
    "p": lambda topic, draw: draw.of(topic.places),
}
