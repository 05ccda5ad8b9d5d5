"""What a training run and the audit of its plan have found. Everything in it may be published."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from coalmine.auditor.membership.disparate import Disparity, Share
from coalmine.auditor.membership.low_rates import LabelOnly
from coalmine.auditor.membership.suite import Repeated, repeated
from coalmine.auditor.report.record import strict
from coalmine.protocol.finding import Finding, Verdict
from coalmine.protocol.privacy import Claim

TRAINED_FORMAT, AUDIT_FORMAT = "coalmine training 1", "coalmine membership audit 1"
SWEEP_FORMAT = "coalmine membership sweep 1"


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
class Drop:
    """The share of the models with a canary in which the filter took it at the beginning of an epoch."""

    epoch: int
    share: float


@dataclass(frozen=True)
class Subject:
    """One canary, or many in one run, over all repetitions.

    Attributes:
        findings: one of each repetition. dropped_in: median epoch in which the filter dropped it among the models that
            held it, ``None`` where at least half of them kept it; of many canaries, the share that was dropped.
        drops: when a filter took a single canary, epochs ascending; what is missing to 1 is the share that kept it.
    """

    name: str
    findings: tuple[Finding, ...]
    dropped_in: float | None
    drops: tuple[Drop, ...] = ()

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
        dropped: the same for each class, and for each subgroup where the data have some; models without a canary.
    """

    name: str
    subjects: tuple[Subject, ...]
    accuracy: float
    accuracy_std: float
    accuracy_random_start: float | None
    lost: float
    dropped: tuple[Share, ...] = ()


@dataclass(frozen=True)
class MembershipAudit:
    """Shadow models of one plan.

    Attributes:
        models: with each canary, and as many without any, shared by all canaries of an arm.
        accuracy_before: of the initial model. notes: what a reader must know.
        label_only: one of each defence. disparate: one of each share of the minority.
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
    label_only: tuple[LabelOnly, ...] = ()
    disparate: tuple[Disparity, ...] = ()

    @property
    def verdict(self) -> Verdict:
        every = [subject.verdict for arm in self.arms for subject in arm.subjects]
        return Verdict.CONTRADICTED if Verdict.CONTRADICTED in every else Verdict.CONSISTENT

    @property
    def alarm(self) -> str | None:
        """What to say aloud where a formal or exact bound lies above the claim."""
        broken = [
            f"{one.name} ({arm.name})"
            for arm in self.arms
            for one in arm.subjects
            if one.verdict is Verdict.CONTRADICTED
        ]
        if not broken:
            return None
        return (
            f"THE CLAIM IS CONTRADICTED by {'; '.join(broken)}: a formal or exact bound lies above ε ="
            f" {self.claim.eps_pld_upper:.4f}. This is evidence of a broken mechanism (or of the one failure in"
            f" {1 / self.alpha:g} that each bound may have). Do not release the model; repeat on another seed."
        )


Value = int | float | str | bool | None


@dataclass(frozen=True)
class Audited:
    """A study's audits: one, or one for each point of a sweep.

    Attributes:
        keys: that the points differ in. points: the values of the keys, and what was found there.
    """

    study: str
    keys: tuple[str, ...]
    points: tuple[tuple[dict[str, Value], MembershipAudit], ...]


def trained_json(found: Trained) -> dict[str, Any]:
    """Strict JSON values; infinities under ``not_finite``."""
    return {"format": TRAINED_FORMAT, **strict(TypeAdapter(Trained).dump_python(found, mode="json"))}


def audit_json(found: MembershipAudit) -> dict[str, Any]:
    """Strict JSON values; infinities under ``not_finite``."""
    document = TypeAdapter(MembershipAudit).dump_python(found, mode="json")
    return {"format": AUDIT_FORMAT, "verdict": found.verdict.value, **strict(document)}


def audited_json(found: Audited) -> dict[str, Any]:
    """A single audit as :func:`audit_json`; of a sweep, its points."""
    if not found.keys:
        return audit_json(found.points[0][1])
    points = [{"values": values, "findings": audit_json(audit)} for values, audit in found.points]
    return {"format": SWEEP_FORMAT, "study": found.study, "keys": list(found.keys), "points": points}
