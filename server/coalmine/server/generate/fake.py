"""A generator for tests that misbehaves on schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from coalmine.server.generate.items import REFUSED, Item, ItemGenerator, Operation


class Answer(StrEnum):
    """How one request is answered."""

    GOOD = "good"
    BLANK = "blank"
    REPEAT = "repeat"
    VERBATIM = "verbatim"
    REFUSAL = "refusal"
    MARKED_REFUSAL = "marked refusal"
    UNFAITHFUL = "unfaithful"


@dataclass
class FakeGenerator(ItemGenerator):
    """Answers the requests in turn with ``schedule``, over and over.

    A good answer is the prompt's first part and a word of its own; an unfaithful one has nothing of the prompt.
    The schedule runs on over calls, so this generator is not a function of (prompt, seed) unless every answer is alike.

    Attributes:
        schedule: how requests are answered.
        barren: prompts that only ever get blank answers.
        asked: every item that was asked for, in order.
    """

    schedule: Sequence[Answer] = (Answer.GOOD,)
    barren: frozenset[str] = frozenset()
    asked: list[Item] = field(default_factory=list)

    @property
    def id(self) -> str:
        return "fake"

    def write(self, items: Sequence[Item]) -> Iterator[Mapping[int, str]]:
        """One text at a time."""
        for index, item in enumerate(items):
            answer = (
                Answer.BLANK if item.prompt[0] in self.barren else self.schedule[len(self.asked) % len(self.schedule)]
            )
            self.asked.append(item)
            yield {index: self._answer(answer, item)}

    def _answer(self, answer: Answer, item: Item) -> str:
        own = f"w{item.stream().integers(2**40):x}"
        prompt = item.prompt[0]
        texts = {
            Answer.GOOD: f"{prompt} {own}".strip(),
            Answer.BLANK: "  \n",
            Answer.REPEAT: f"{prompt} always the same",
            Answer.VERBATIM: f" {prompt.upper()}" if item.operation is Operation.PARAPHRASE else "",
            Answer.REFUSAL: f"I'm sorry, but I cannot help with {own}.",
            Answer.MARKED_REFUSAL: REFUSED,
            Answer.UNFAITHFUL: f"zz{own} qq{own} xx{own}",
        }
        return texts[answer]
