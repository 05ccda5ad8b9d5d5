"""What language models are asked. Examples written for this file.

A small model gets few-shot prompts: for rewordings in turns of its chat template (faithful more often than plain text),
for samples and variations as plain text to go on with. A server gets instructions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from coalmine.server.generate.items import Item, Operation
from coalmine.server.generate.vocabulary import TOPICS

_REGISTERS = (
    "chat message",
    "tweet",
    "question on a help forum",
    "customer review",
    "political speech",
    "diary",
    "news",
    "short reply",
    "line of a story",
    "complaint",
    "advice",
    "instruction",
)
_LONGEST_EXAMPLE = 240
_MOST_EXAMPLES = 8
_SUBJECTS = tuple(dict.fromkeys(thing for topic in TOPICS.values() for thing in topic.things))

_REWORDED = (
    (
        "anyone know how to get the sound working on this thing?",
        "does someone know how I can make the audio work on this?",
    ),
    ("thanks, that did it", "thank you, that solved the problem"),
    (
        "The committee will meet again in March to settle the remaining questions.",
        "In March the committee is going to meet once more and decide what is still open.",
    ),
    ("i cant find the file", "the file is nowhere to be found"),
)
_TURN = "<|im_start|>user\nRewrite: {}<|im_end|>\n<|im_start|>assistant\n"
_PARAPHRASE_PREFIX = (
    "<|im_start|>system\nYou rewrite sentences in other words and keep the meaning.<|im_end|>\n"
    + "".join(f"{_TURN.format(text)}{reworded}<|im_end|>\n" for text, reworded in _REWORDED)
)

_SAMPLE_PREFIX = "Short texts by different people, each with its kind and its subject.\n\n" + "".join(
    f'{wish}: "{text}"\n'
    for wish, text in (
        ("chat message, printer", "anyone else get blank pages since the update? mine worked fine on monday"),
        ("customer review, haircut", "Walked in without an appointment and left very happy. Nadia took her time."),
        ("political speech, canal", "The canal will bring the produce of our western farms down to the sea."),
        ("tweet, exam", "two hours of sleep and a chemistry exam at 8. wish me luck"),
        ("short reply, wifi password", "it's on the back of the router"),
    )
)

_VARY_PREFIX = "Texts of the same kind by the same group of people:\n\n"

_SYSTEM = {
    Operation.PARAPHRASE: (
        "Reword the user's text. Keep its meaning, tone, language and rough length; use other words and "
        "another order where you can. Answer with the reworded text alone, on one line."
    ),
    Operation.SAMPLE: (
        "Write one short text of 4 to 30 words of the kind and on the subject the user names, as a real "
        "person would. Answer with the text alone, on one line."
    ),
    Operation.VARY: (
        "The user shows texts of one kind. Write one new text that could stand among them, with content of "
        "its own. Answer with the new text alone, on one line."
    ),
}


@dataclass(frozen=True)
class Continuation:
    """A prompt for a small model.

    Attributes:
        prefix: what many prompts share.
        rest: what follows it.
        quoted: whether the text to come ends at a quotation mark.
    """

    prefix: str
    rest: str
    quoted: bool


def continuation(item: Item) -> Continuation:
    """The few-shot prompt of an item."""
    if item.operation is Operation.PARAPHRASE:
        text = " ".join(item.prompt[0].replace("<|", "< |").split())
        return Continuation(_PARAPHRASE_PREFIX, _TURN.format(text), quoted=False)
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
    subject = _SUBJECTS[int(rng.integers(len(_SUBJECTS)))]
    register = _REGISTERS[int(rng.integers(len(_REGISTERS)))]
    label = item.prompt[0].strip()
    return f"{register}, {subject}" + (f", {label}" if label else "")


def _examples(item: Item) -> list[str]:
    """At most eight examples in an order of the item's own, each cut to a readable length."""
    texts = [" ".join(text.split())[:_LONGEST_EXAMPLE] for text in item.prompt if text.strip()]
    order: np.ndarray = item.stream().permutation(len(texts))
    return [texts[index] for index in order[:_MOST_EXAMPLES]]
