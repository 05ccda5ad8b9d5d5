"""Synthetic records from a language model fine-tuned on the training split, without (sft) or with DP-SGD (dp-sft).

The model starts from public knowledge only: a small transformer warmed up on public text, or a local model as it is.
Texts are asked for evenly over the labels that occur, which count as public.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coalmine.protocol.errors import DataError
from coalmine.protocol.ports import Advance
from coalmine.protocol.privacy import Claim, PrivacyUnit
from coalmine.protocol.randomness import Purpose, stream
from coalmine.server.synthesise.corpus import Corpus, Record, Synthetic, spread
from coalmine.server.synthesise.lessons import Lesson, lessons
from coalmine.server.synthesise.noise_level import noise_level
from coalmine.server.synthesise.pieces import Pieces, byte_pairs
from coalmine.server.synthesise.recipe import Asking, Budget, Schedule, Shape

Stage = Callable[[str, int], AbstractContextManager[Advance]]
"""Opens one stage of a progress display: its name and its number of units."""

_LONGEST_CONTEXT = 256
_SHAPE, _SCHEDULE, _BUDGET, _ASKING = Shape(), Schedule(), Budget(), Asking()


@dataclass(frozen=True)
class Base:
    """A language model that has seen public text only.

    Attributes:
        model: `TinyModel` or `LocalModel`; training changes it in place.
        context: pieces of a lesson.
        id: everything that would make it another model.
    """

    model: Any
    pieces: Pieces
    context: int
    id: str


def _silent(name: str, total: int) -> AbstractContextManager[Advance]:
    return nullcontext(lambda done: None)


def tiny_base(
    public: Sequence[tuple[str, str]], seed: int, shape: Shape = _SHAPE, epochs: int = 3, stage: Stage = _silent
) -> Base:
    """A transformer from scratch, its vocabulary and first lessons from public texts.

    Args:
        public: (text, label) pairs that do not depend on anybody's record.
        epochs: passes over the public texts; 0 leaves the weights random.

    Raises:
        DataError: no public text.
    """
    from coalmine.server.synthesise.tiny_model import TinyModel
    from coalmine.server.synthesise.training import fit

    if not public:
        raise DataError("a vocabulary needs public text", where="public", remedy="at least a few hundred texts")
    pieces = byte_pairs((text for text, _ in public), shape.vocabulary)
    model = TinyModel(pieces.size, shape, _number(seed, "weights"))
    if epochs:
        records = lessons((Record(0, text, label) for text, label in public), pieces, shape.context)
        with stage("warm up on public text", epochs * len(records)) as advance:
            fit(model, records, Schedule(epochs), stream(seed, Purpose.SYNTHESIS, user="order of public text"), advance)
    size = sum(parameter.numel() for parameter in model.parameters())
    name = f"transformer of {size:,} parameters, {epochs} epochs on {len(public):,} public texts"
    return Base(model, pieces, shape.context, name)


def local_base(folder: Path, seed: int) -> Base:
    """A local Hugging Face model with fresh adapters.

    Raises:
        ModelError: there is none in the folder.
    """
    from coalmine.server.synthesise.local_model import RANK, open_local

    model, pieces = open_local(folder, _number(seed, "weights"))
    return Base(model, pieces, min(model.context, _LONGEST_CONTEXT), f"{folder.name} with adapters of rank {RANK}")


def sft(
    corpus: Corpus,
    base: Base,
    size: int,
    seed: int,
    schedule: Schedule = _SCHEDULE,
    asking: Asking = _ASKING,
    stage: Stage = _silent,
) -> Synthetic:
    """Ordinary fine-tuning. It promises nothing, and long training memorises.

    Raises:
        ModelError: training diverged.
    """
    from coalmine.server.synthesise.training import fit

    taught = lessons(corpus, base.pieces, base.context)
    with stage("fine-tune", schedule.epochs * len(taught)) as advance:
        fit(base.model, taught, schedule, stream(seed, Purpose.SYNTHESIS, user="order of records"), advance)
    return _ask(corpus, base, size, seed, asking, f"sft/{schedule.epochs} epochs/{base.id}", stage)


def dp_sft(
    corpus: Corpus,
    base: Base,
    size: int,
    seed: int,
    budget: Budget = _BUDGET,
    asking: Asking = _ASKING,
    stage: Stage = _silent,
) -> tuple[Synthetic, Claim]:
    """Fine-tuning with DP-SGD.

    Returns:
        the records, and the formal claim for the training and so for them: add/remove adjacency of one unit of
        ``budget.unit``; the number of units, the labels that occur and ``size`` count as public.

    Raises:
        StudyError: the budget cannot be kept.
    """
    from coalmine.server.synthesise.training import fit_privately

    taught = lessons(corpus, base.pieces, base.context)
    units = _by_user(corpus, taught) if budget.unit is PrivacyUnit.USER else [[lesson] for lesson in taught]
    mechanism, claim = noise_level(budget, len(units))
    with stage("fine-tune with DP-SGD", budget.steps) as advance:
        fit_privately(
            base.model,
            units,
            budget,
            mechanism,
            stream(seed, Purpose.PARTICIPATION, user="dp-sft"),
            int(stream(seed, Purpose.NOISE, user="dp-sft").integers(2**62)),
            advance,
        )
    name = f"dp-sft/epsilon {budget.epsilon:g}, delta {budget.delta:g} per {budget.unit}/{base.id}"
    return _ask(corpus, base, size, seed, asking, name, stage), claim


def _ask(corpus: Corpus, base: Base, size: int, seed: int, asking: Asking, name: str, stage: Stage) -> Synthetic:
    from coalmine.server.synthesise.writing import write

    asking = replace(asking, longest=min(asking.longest, base.context - 1))
    labels = spread(corpus.known_labels, size)
    with stage("write", size) as advance:
        texts = write(base.model, base.pieces, labels, asking, seed, advance)
    kept = [(text, label) for text, label in zip(texts, labels, strict=True) if text]
    return Synthetic(tuple(text for text, _ in kept), tuple(label for _, label in kept), name, blank=size - len(kept))


def _by_user(corpus: Corpus, taught: Sequence[Lesson]) -> list[list[Lesson]]:
    units: list[list[Lesson]] = [[] for _ in corpus.records]
    for record, lesson in zip(corpus, taught, strict=True):
        units[record.user].append(lesson)
    return units


def _number(seed: int, what: str) -> int:
    return int(stream(seed, Purpose.SYNTHESIS, user=what).integers(2**62))
