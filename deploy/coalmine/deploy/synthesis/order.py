"""What is to be made."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from coalmine.clients.data.assignment import Design
from coalmine.clients.data.load import DataSource
from coalmine.protocol.errors import StudyError
from coalmine.server.synthesise.recipe import Asking, Budget, Schedule, Shape

MAX_REPETITIONS = 1000


class Kind(StrEnum):
    """Which generator. NONE makes the splits alone, for a generator of the user's own."""

    COPYCAT = "copycat"
    REWRITE = "rewrite"
    SFT = "sft"
    DP_SFT = "dp-sft"
    NONE = "none"


class Public(StrEnum):
    """Texts that depend on nobody's record: generated people of another seed, or the rules' sentences."""

    PERSONAS = "personas"
    RULES = "rules"


class Writer(StrEnum):
    """What rewords records."""

    RULES = "rules"
    SMOLLM2 = "smollm2"


@dataclass(frozen=True)
class CanaryOrder:
    """Canaries to insert (:mod:`coalmine.auditor.disclosure.echo_canaries`).

    Attributes:
        count: of both splits together; 0: none.
        repetitions: records of each, all alike.
        references: further runs of the generator, each with another part of the canaries.
        prefix, suffix, perplexity: of a canary.
    """

    count: int = 0
    repetitions: int = 1
    references: int = 4
    prefix: int = 20
    suffix: int = 30
    perplexity: float = 31.0

    def __post_init__(self) -> None:
        if self.count < 0 or self.count == 1:
            raise StudyError(f"{self.count} canaries", where="canaries", remedy="0, or at least 2")
        if not 1 <= self.repetitions <= MAX_REPETITIONS:
            raise StudyError(
                f"{self.repetitions} repetitions", where="canary_repetitions", remedy=f"1 to {MAX_REPETITIONS}"
            )
        if self.references < 0 or (self.count and self.references > self.count):
            raise StudyError(f"{self.references} references", where="references", remedy="0 to the number of canaries")


@dataclass(frozen=True)
class Order:
    """Everything a synthetic data set depends on.

    Attributes:
        size: synthetic records; ``None``: as many as there are training records. `rewrite` writes one for each.
        rate, passage: of the copycat. writer: of `rewrite`.
        public_texts: how many texts the small transformer sees first. model: a local model instead of it.
    """

    data: DataSource
    generator: Kind
    design: Design = Design.BERNOULLI
    p: float = 0.5
    seed: int = 0
    size: int | None = None
    rate: float = 0.05
    passage: int | None = None
    writer: Writer = Writer.RULES
    public: Public = Public.PERSONAS
    public_texts: int = 2000
    model: Path | None = None
    shape: Shape = field(default_factory=Shape)
    schedule: Schedule = field(default_factory=Schedule)
    budget: Budget = field(default_factory=Budget)
    asking: Asking = field(default_factory=Asking)
    canaries: CanaryOrder = field(default_factory=CanaryOrder)

    def __post_init__(self) -> None:
        if self.size is not None and self.size < 1:
            raise StudyError(f"{self.size} records", where="size", remedy="at least 1")
        if self.size is not None and self.generator is Kind.REWRITE:
            raise StudyError("`rewrite` writes one record for each", where="size", remedy="leave it out")
        if self.public_texts < 1:
            raise StudyError(f"{self.public_texts} public texts", where="public_texts", remedy="at least 1")
