"""What language models are asked: few-shot continuations for a base model, messages for a chat model. Examples written for this file."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from coalmine.server.generate.items import Item, Operation
from coalmine.server.generate.vocabulary import TOPICS

_REGISTERS = (
    "chat message", "tweet", "question on a help forum", "customer review", "political speech", "diary", "news",
    "short reply",
    "line of a story", "complaint", "advice", "instruction",
)  # fmt: skip
_LONGEST_EXAMPLE = 240
_MOST_EXAMPLES = 8

_PARAPHRASE_PREFIX = """Pairs of sentences that say the same thing in different words.

"anyone know how to get the sound working on this thing?" means the same as "does someone know how I can make the audio work on this?"
"thanks, that did it" means the same as "thank you, that solved the problem"
"The committee will meet again in March to settle the remaining questions." means the same as "In March the committee is going to meet once more and decide what is still open."
"i cant find the file" means the same as "the file is nowhere to be found"
"lol no way" means the same as "haha, impossible"
"""

_SAMPLE_PREFIX = """Short texts by different people, each with its kind and its subject.

chat message, printer: "anyone else get blank pages since the update? mine worked fine on monday"
customer review, haircut: "Walked in without an appointment and left very happy. Nadia listened and took her time."
political speech, canal: "The canal will bring the produce of our western farms to the sea, and I ask Congress for the
means to complete it." tweet, exam: "two hours of sleep and a chemistry exam at 8. wish me luck"
short reply, wifi password: "it's on the back of the router"
"""

_VARY_PREFIX = "Texts of the same kind by the same group of people:\n\n"

_SYSTEM = {
    Operation.PARAPHRASE: "Reword the user's text. Keep its meaning, tone, language and rough length; use other words
    and another order " "where you can. Answer with the reworded text alone, on one line.",
    Operation.SAMPLE: "Write one short text of 4 to 30 words of the kind and on the subject the user names, as a real
    person would. " "Answer with the text alone, on one line.",
    Operation.VARY: "The user shows texts of one kind. Write one new text that could stand among them, with content of
    its own. " "Answer with the new text alone, on one line.",
}


@dataclass(frozen=True)
class Continuation:
    """A prompt for a base model: a prefix many prompts share, the rest, and whether the text ends at a quotation mark."""

    prefix: str
    rest: str
    quoted: bool


def continuation(item: Item) -> Continuation:
    """The few-shot prompt of an item."""
    if item.operation is Operation.PARAPHRASE:
        text = " ".join(item.prompt[0].split()).replace('"', "'")
        return Continuation(_PARAPHRASE_PREFIX, f'"{text}" means the same as "', quoted=True)
    if item.operation is Operation.SAMPLE:
        return Continuation(_SAMPLE_PREFIX, f'{_wish(item)}: "', quoted=True)
    examples = "".join(f"- {text}\n" for text in _examples(item))
    return Continuation(_VARY_PREFIX, f"{examples}-", quoted=False)


def messages(item: Item) -> list[dict[str, str]]:
    """The chat messages of an item."""
    if item.operation is Operation.PARAPHRASE:
        user = " ".join(item.prompt[0].split())
    elif item.operation is Operation.SAMPLE:
        user = _wish(item)
    else:
        user = "\n".join(f"- {text}" for text in _examples(item))
    return [{"role": "system", "content": _SYSTEM[item.operation]}, {"role": "user", "content": user}]


def tidy(text: str) -> str:
    """The first line that says something, without list marks, lead-ins and quotation marks."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    line = re.sub(r"^(?:[-*•]\s+|\(?\d{1,2}[.):]\s+)", "", lines[0])
    line = re.sub(
        r"^(?:reworded|paraphrased?|rephrased|answer|output|text|new text)(?: (?:text|sentence|version))?:\s*",
        "",
        line,
        flags=re.I,
    )
    if len(line) > 1 and line[0] in "\"“”'‘`" and line[-1] in "\"“”'’`":
        line = line[1:-1]
    return line.strip().strip('"“”').strip()


def _wish(item: Item) -> str:
    """Kind and subject, drawn from the item's own stream so that samples spread; the label stands at the end."""
    rng = item.stream()
    topic = TOPICS[str(rng.choice(list(TOPICS)))]
    subject = str(rng.choice(topic.things))
    label = item.prompt[0].strip()
    return f"{rng.choice(_REGISTERS)}, {subject}" + (f", {label}" if label else "")


def _examples(item: Item) -> list[str]:
    """At most eight examples in an order of the item's own, each cut to a readable length."""
    texts = [" ".join(text.split())[:_LONGEST_EXAMPLE] for text in item.prompt if text.strip()]
    order: np.ndarray = item.stream().permutation(len(texts))
    return [texts[index] for index in order[:_MOST_EXAMPLES]]
