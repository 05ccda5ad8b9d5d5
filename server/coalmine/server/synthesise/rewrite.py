"""Rewriting: every private record reworded by a generator. No privacy is promised, and names survive a rewording."""

from __future__ import annotations

from coalmine.protocol.errors import GeneratorError
from coalmine.protocol.ports import Advance, Generator
from coalmine.server.generate.judge import refuses
from coalmine.server.synthesise.corpus import Corpus, Synthetic

_ASKED_AT_ONCE = 256


def rewrite(corpus: Corpus, generator: Generator, seed: int, progress: Advance | None = None) -> Synthetic:
    """One rewording per record, in the order of the corpus.

    Blank answers and refusals are left out and counted.

    Raises:
        GeneratorError: nothing usable came back.
    """
    records = list(corpus)
    texts: list[str] = []
    labels: list[str] = []
    for first in range(0, len(records), _ASKED_AT_ONCE):
        some = records[first : first + _ASKED_AT_ONCE]
        answers = generator.paraphrase([record.text for record in some], seed)
        for record, answer in zip(some, answers, strict=True):
            if answer.strip() and not refuses(answer):
                texts.append(answer)
                labels.append(record.label)
        if progress is not None:
            progress(len(some))
    if not texts:
        raise GeneratorError(
            f"none of {len(records)} records was reworded", where=generator.id, remedy="try another generator"
        )
    return Synthetic(tuple(texts), tuple(labels), f"rewrite/{generator.id}", blank=len(records) - len(texts))
