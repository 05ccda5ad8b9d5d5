"""The rules: texts without a model, deterministic and fast.

They are no language model: sentences are plausible in form, spread widely in meaning, and cheap (thousands a second).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from coalmine.protocol.errors import ModelError, nearest
from coalmine.server.generate.grammar import REGISTERS, Draw, expand
from coalmine.server.generate.items import Item, ItemGenerator, Operation, fingerprint
from coalmine.server.generate.rewording import reword
from coalmine.server.generate.vocabulary import GROUPS, TOPICS

_SHORTEST, _LONGEST = 4, 30
_FAVOUR = 8.0
"""Weight of what a label names, against 1 for everything else."""
_SOURCES = ("grammar", "inflection", "items", "judge", "rewording", "rules", "synonyms", "topic", "vocabulary")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_JOINING = frozenset(
    re.split(" ", "and but or because if when while so that which who to with for in on at from of is are was will can")
)
_NAMES = tuple(TOPICS)
_REGISTERS = tuple(REGISTERS)


class RulesGenerator(ItemGenerator):
    """Sentences from a grammar; rewordings word by word.

    Args:
        topic: "general", or the topic or group of topics (`vocabulary.TOPICS`, `vocabulary.GROUPS`) to stay with.

    Raises:
        ModelError: an unknown topic.
    """

    def __init__(self, topic: str = "general") -> None:
        if topic != "general" and topic not in TOPICS and topic not in GROUPS:
            raise ModelError(
                f"the rules do not know the topic {topic!r}",
                where="generator.topic",
                remedy=nearest(topic, ("general", *GROUPS, *TOPICS)),
            )
        self.topic = topic
        self._allowed = np.array(
            [topic in ("general", name, content.group) for name, content in TOPICS.items()], dtype=np.float64
        )
        self._steering: dict[str, tuple[list[float], list[float]]] = {}

    @property
    def id(self) -> str:
        """rules/topic/digest of the rules' own source."""
        here = Path(__file__).parent
        return f"rules/{self.topic}/{_digest(tuple(here / f'{name}.py' for name in _SOURCES))}"

    def write(self, items: Sequence[Item]) -> Iterator[Mapping[int, str]]:
        """One text at a time."""
        for index, item in enumerate(items):
            draw = Draw(item.stream())
            if item.operation is Operation.PARAPHRASE:
                yield {index: reword(item.prompt[0], draw)}
            elif item.operation is Operation.VARY:
                yield {index: self._variation(item.prompt, draw)}
            else:
                yield {index: self._sentence(item.prompt[0], draw)}

    def _sentence(self, label: str, draw: Draw) -> str:
        topics, registers = self._steer(label)
        while True:
            register = _REGISTERS[draw.index(registers)]
            main, other = (TOPICS[_NAMES[draw.index(topics)]] for _ in range(2))
            text = expand(draw.of(REGISTERS[register]), main, other, draw)
            if draw.uniform() < 0.25:
                second = expand(draw.of(REGISTERS[_REGISTERS[draw.index(registers)]]), main, other, draw)
                text = f"{text if text[-1] in '.?!' else text + '.'} {_capital(second)}"
            if label.strip() and draw.uniform() < 0.1:
                text = draw.of(("{label}: {text}", "{text} ({label})", "{text}, {label}")).format(
                    label=label.strip(), text=text
                )
            if _SHORTEST <= len(text.split()) <= _LONGEST:
                return _finish(text, register, draw)

    def _steer(self, label: str) -> tuple[list[float], list[float]]:
        """Cumulative weights of topics and registers: the label's own are favoured, else six topics by its digest."""
        if label not in self._steering:
            words = set(_WORD.findall(label.lower()))
            named = np.array([bool(words & _words_of(name)) for name in _NAMES])
            registers = np.array([_FAVOUR if name in words else 1.0 for name in _REGISTERS])
            if label.strip() and not named.any():
                digest = np.frombuffer(hashlib.sha256(label.encode()).digest()[:6], dtype=np.uint8)
                named[digest.astype(int) % len(_NAMES)] = True
            topics = np.where(named, _FAVOUR if words else 1.0, 1.0) * self._allowed
            self._steering[label] = (np.cumsum(topics).tolist(), np.cumsum(registers).tolist())
        return self._steering[label]

    def _variation(self, examples: Sequence[str], draw: Draw) -> str:
        """A fragment of one example joined to one of another, or a sentence of the grammar with their words."""
        examples = [text for text in examples if text.strip()]
        if not examples:
            return self._sentence("", draw)
        first, second = (examples[int(draw.uniform() * len(examples))].split() for _ in range(2))
        if draw.uniform() < 0.7:
            head, tail = first[: _joint(first, draw)], second[_joint(second, draw) :]
            mixed = " ".join([*head, *tail][:_LONGEST])
        else:
            long = tuple(word for word in (*first, *second) if len(_bare(word)) > 3) or tuple(first)
            sentence = self._sentence("", draw).split()
            places = [position for position, word in enumerate(sentence) if len(_bare(word)) > 3] or [0]
            for position in {places[int(draw.uniform() * len(places))] for _ in range(1 + len(places) // 3)}:
                sentence[position] = _bare(draw.of(long)) or sentence[position]
            mixed = " ".join(sentence)
        return reword(mixed, draw)


def _finish(text: str, register: str, draw: Draw) -> str:
    """Case and final punctuation as the register has them."""
    if register in ("speech", "news", "story", "review", "instruction"):
        return _capital(text) if text[-1] in ".?!)" else _capital(text) + "."
    roll = draw.uniform()
    if register == "question":
        return _capital(text) if roll < 0.6 else text.rstrip("?") if roll > 0.9 else text
    if roll < 0.25 and text[-1] not in ".?!":
        return _capital(text) + draw.of((".", "!", "..."))
    return text.lower() if roll < 0.6 else text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _bare(word: str) -> str:
    return word.strip(".,;:!?\"'()[]")


def _joint(words: Sequence[str], draw: Draw) -> int:
    """Where to cut a text: before a joining word if it has one, else anywhere."""
    joints = [position for position in range(1, len(words)) if _bare(words[position]).lower() in _JOINING]
    choices = joints or list(range(1, len(words))) or [0]
    return choices[int(draw.uniform() * len(choices))]


@cache
def _words_of(name: str) -> frozenset[str]:
    """The words by which a label may mean a topic."""
    content = TOPICS[name]
    return frozenset(_WORD.findall(" ".join((name, content.group, *content.things)).lower())) - {"and", "of", "the"}


@cache
def _digest(paths: tuple[Path, ...]) -> str:
    return fingerprint(*paths)
