"""The copycat: a generator that leaks at a known rate. Its truth is what the power of an audit is measured against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from coalmine.protocol.errors import DataError, StudyError
from coalmine.server.synthesise.corpus import Corpus, Synthetic


class Copy(NamedTuple):
    """One planted disclosure: words ``start`` to ``stop`` of a record of ``user`` stand in synthetic text ``position``.

    ``user`` and ``record`` are indices into the corpus.
    """

    position: int
    user: int
    record: int
    start: int
    stop: int


def copycat(
    corpus: Corpus,
    fresh: Sequence[str],
    rate: float,
    rng: np.random.Generator,
    *,
    passage: int | None = None,
    labels: Sequence[str] | None = None,
) -> tuple[Synthetic, tuple[Copy, ...]]:
    """Each text is, with probability ``rate`` and independently, a copy; otherwise it is the fresh one.

    A copy is a random record of a random user. So users are copied equally often, however much they hold.

    Args:
        fresh: one text per synthetic record, from a source that knows neither the training split nor who is in it.
            Texts of held-out users would not do: they depend on the assignment as much as copies.
        rate: in [0, 1]; 0 gives the null of zero learning exactly.
        passage: copy so many consecutive words, after the fresh text, instead of a whole record; at least 1.
        labels: one per fresh text.

    Returns:
        the records, and every copy in order of position.

    Raises:
        DataError: no fresh text. StudyError: a number out of its range.
    """
    if not 0 <= rate <= 1:
        raise StudyError(f"a rate of {rate!r}", where="rate", remedy="a probability in [0, 1]")
    if passage is not None and passage < 1:
        raise StudyError(f"a passage of {passage} words", where="passage", remedy="at least 1")
    if not fresh:
        raise DataError("no synthetic text is asked for", where="size", remedy="at least 1")
    labels = list(labels) if labels is not None else [""] * len(fresh)
    copied = rng.random(len(fresh)) < rate
    texts, copies = list(fresh), []
    for position in np.flatnonzero(copied).tolist():
        user = int(rng.integers(len(corpus.records)))
        record = int(rng.integers(len(corpus.records[user])))
        source = corpus.records[user][record]
        words = source.split()
        start, stop = 0, len(words)
        if passage is not None and passage < len(words):
            start = int(rng.integers(len(words) - passage + 1))
            stop = start + passage
        if passage is None:
            texts[position], labels[position] = source, corpus.labels[user][record]
        else:
            texts[position] = f"{texts[position]} {' '.join(words[start:stop])}"
        copies.append(Copy(position, user, record, start, stop))
    name = f"copycat/rate {rate:g}" + (f"/passages of {passage} words" if passage else "")
    return Synthetic(tuple(texts), tuple(labels), name), tuple(copies)
