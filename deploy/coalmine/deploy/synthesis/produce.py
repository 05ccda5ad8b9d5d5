"""Carries out an order: data, splits, generator, references."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from coalmine.auditor.disclosure.echo_canaries import WordChain
from coalmine.clients.data.assignment import Assigned, assign
from coalmine.clients.data.load import load
from coalmine.clients.data.personas import PersonasSource, write_personas
from coalmine.clients.data.users import User
from coalmine.deploy.progress import Stages
from coalmine.deploy.synthesis.insertion import insert
from coalmine.deploy.synthesis.order import Kind, Order, Public, Writer
from coalmine.protocol.ports import Generator
from coalmine.protocol.privacy import Claim
from coalmine.protocol.randomness import Purpose, stream
from coalmine.server.generate.rules import RulesGenerator
from coalmine.server.synthesise.copycat import Copy, copycat
from coalmine.server.synthesise.corpus import Corpus, Synthetic, spread
from coalmine.server.synthesise.fine_tuning import Base, dp_sft, local_base, sft, tiny_base
from coalmine.server.synthesise.rewrite import rewrite

_PUBLIC_RECORDS_PER_PERSON = 4
_SUFFIX_TEXTS = 4000

Run = tuple[Synthetic, Claim | None, tuple[Copy, ...]]


@dataclass(frozen=True)
class Product:
    """What was made. Everything but ``synthetic`` is private.

    Attributes:
        train, holdout: with the canaries among them. canaries: those put in and those held out.
        parts: for every reference the canaries it saw. references: what the generator then wrote.
        copies: the copycat's truth.
    """

    digest: str
    source: str
    train: tuple[User, ...] = field(repr=False)
    holdout: tuple[User, ...] = field(repr=False)
    synthetic: Synthetic | None
    claim: Claim | None
    copies: tuple[Copy, ...] = field(repr=False)
    canaries: Assigned | None = field(repr=False)
    parts: tuple[tuple[User, ...], ...] = field(repr=False)
    references: tuple[Synthetic, ...]


def produce(order: Order, stages: Stages, cache: Path) -> Product:
    """Load, assign, generate.

    Args:
        cache: where a generator that needs it keeps its weights and texts.

    Raises:
        CoalmineError: whatever is wrong with the order or the data, before anything is written.
    """
    with stages.stage("data"):
        table = load(order.data)
        digest = table.digest
        canaries: Assigned | None = None
        parts: tuple[tuple[User, ...], ...] = ()
        if order.canaries.count:
            labels = sorted({label for user in table.users for label in user.labels})
            chain = WordChain([text for text, _ in public_texts(order, labels, _SUFFIX_TEXTS, "suffixes")])
            inserted = insert(table, order.canaries, chain, order.design, order.p, order.seed)
            table, canaries, parts = inserted.others, inserted.assigned, inserted.parts
        users = assign(table, order.design, order.p, order.seed)
    own = (users.train + canaries.train, users.holdout + canaries.holdout) if canaries else (users.train, users.holdout)
    outputs: list[Run] = []
    if order.generator is not Kind.NONE:
        run = _generator(order, users.train, stages, cache)
        for number, members in enumerate((own[0], *(users.train + part for part in parts))):
            outputs.append(run(members, int(stream(order.seed, Purpose.SYNTHESIS, number).integers(2**62))))
    synthetic, claim, copies = outputs[0] if outputs else (None, None, ())
    return Product(
        digest, table.source, *own, synthetic, claim, copies, canaries, parts, tuple(made for made, _, _ in outputs[1:])
    )


def public_texts(order: Order, labels: Sequence[str], count: int, what: str) -> list[tuple[str, str]]:
    """``count`` texts with their labels; ``what`` for: two purposes get different texts."""
    seed = int(stream(order.seed, Purpose.SYNTHESIS, user=f"public {what}").integers(2**62))
    if order.public is Public.RULES:
        spread_out = spread(tuple(labels), count)
        return list(zip(RulesGenerator().sample(spread_out, seed), spread_out, strict=True))
    people = write_personas(
        PersonasSource(-(-count // _PUBLIC_RECORDS_PER_PERSON), _PUBLIC_RECORDS_PER_PERSON, seed=seed)
    )
    pairs = [pair for user in people.users for pair in zip(user.records, user.labels, strict=True)]
    return pairs[:count]


def _generator(
    order: Order, train: Sequence[User], stages: Stages, cache: Path
) -> Callable[[Sequence[User], int], Run]:
    """The ordered generator as a function of training users and seed. What it knows beforehand is public."""
    labels = sorted({label for user in train for label in user.labels})
    base: Base | None = None
    if order.generator in (Kind.SFT, Kind.DP_SFT):
        base = (
            local_base(order.model, order.seed)
            if order.model
            else tiny_base(
                public_texts(order, labels, order.public_texts, "warm-up"), order.seed, order.shape, stage=stages.stage
            )
        )

    def run(members: Sequence[User], seed: int) -> Run:
        corpus = Corpus(tuple(user.records for user in members), tuple(user.labels for user in members))
        size = order.size or len(corpus)
        match order.generator:
            case Kind.COPYCAT:
                fresh = public_texts(order, labels, size, f"fresh {seed}")
                made, copies = copycat(
                    corpus,
                    [text for text, _ in fresh],
                    order.rate,
                    stream(seed, Purpose.SYNTHESIS, user="copies"),
                    passage=order.passage,
                    labels=[label for _, label in fresh],
                )
                return replace(made, generator=f"{made.generator}/{order.public}"), None, copies
            case Kind.REWRITE:
                with stages.stage("rewrite", len(corpus), "records") as advance:
                    return rewrite(corpus, _writer(order.writer, cache), seed, advance), None, ()
            case Kind.SFT:
                made = sft(corpus, _fresh(base), size, seed, order.schedule, order.asking, stages.stage)
                return made, None, ()
            case Kind.DP_SFT:
                made, claim = dp_sft(corpus, _fresh(base), size, seed, order.budget, order.asking, stages.stage)
                return made, claim, ()
            case Kind.NONE:
                raise AssertionError("no generator was ordered")

    return run


def _fresh(base: Base | None) -> Base:
    """A copy of its own for every run: training changes the weights."""
    assert base is not None
    return replace(base, model=copy.deepcopy(base.model))


def _writer(writer: Writer, cache: Path) -> Generator:
    if writer is Writer.RULES:
        return RulesGenerator()
    from coalmine.server.generate.cache import CachedGenerator
    from coalmine.server.generate.smollm2 import SmolLM2Generator

    return CachedGenerator(SmolLM2Generator(cache), cache)
