"""What a training run and the audit of its plan have found. Everything in it may be published."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from coalmine.auditor.membership.suite import Repeated, repeated
from coalmine.auditor.report.record import strict
from coalmine.protocol.finding import Finding, Verdict
from coalmine.protocol.privacy import Claim

TRAINED_FORMAT, AUDIT_FORMAT = "coalmine training 1", "coalmine membership audit 1"


@dataclass(frozen=True)
class Trained:
    """One federated run.

    Attributes:
        claim: for the steps really taken. trust: whom it relies on, in a sentence.
        accuracy, accuracy_before: on public test samples, after the run and of the model that it began with.
        largest_drop: most samples that the filter can have dropped, from public numbers.
        facts: what a reader needs to repeat it. seconds: wall-clock time by stage.
    """

    study: str
    mode: str
    claim: Claim
    trust: str
    clients: int
    rounds: int
    accuracy: float
    accuracy_before: float
    test_samples: int
    largest_drop: int
    facts: dict[str, str]
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Subject:
    """One canary, or many in one run, over all repetitions.

    Attributes:
        findings: one of each repetition. dropped_in: median epoch in which the filter dropped it among the models that
            held it, ``None`` where at least half of them kept it; of many canaries, the share that was dropped.
    """

    name: str
    findings: tuple[Finding, ...]
    dropped_in: float | None

    @property
    def repeated(self) -> tuple[Repeated, ...]:
        return repeated(self.findings)

    @property
    def verdict(self) -> Verdict:
        against = any(one.verdict is Verdict.CONTRADICTED for one in self.findings)
        return Verdict.CONTRADICTED if against else Verdict.CONSISTENT


@dataclass(frozen=True)
class Arm:
    """The same plan with or without its filter.

    Attributes:
        accuracy: mean over models without a canary, on public test samples; ``accuracy_std`` their spread.
        accuracy_random_start: the same from random initial parameters, where asked for.
        lost: mean share of private samples that the filter dropped.
    """

    name: str
    subjects: tuple[Subject, ...]
    accuracy: float
    accuracy_std: float
    accuracy_random_start: float | None
    lost: float


@dataclass(frozen=True)
class MembershipAudit:
    """Shadow models of one plan.

    Attributes:
        models: with each canary, and as many without any, shared by all canaries of an arm.
        accuracy_before: of the initial model. notes: what a reader must know.
    """

    study: str
    claim: Claim
    alpha: float
    models: int
    repetitions: int
    arms: tuple[Arm, ...]
    accuracy_before: float
    notes: tuple[str, ...]
    facts: dict[str, str]
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        every = [subject.verdict for arm in self.arms for subject in arm.subjects]
        return Verdict.CONTRADICTED if Verdict.CONTRADICTED in every else Verdict.CONSISTENT


def trained_json(found: Trained) -> dict[str, Any]:
    """Strict JSON values; infinities under ``not_finite``."""
    return {"format": TRAINED_FORMAT, **strict(TypeAdapter(Trained).dump_python(found, mode="json"))}


def audit_json(found: MembershipAudit) -> dict[str, Any]:
    """Strict JSON values; infinities under ``not_finite``."""
    document = TypeAdapter(MembershipAudit).dump_python(found, mode="json")
    return {"format": AUDIT_FORMAT, "verdict": found.verdict.value, **strict(document)}
