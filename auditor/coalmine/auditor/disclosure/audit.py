"""The disclosure audit: material, classes and declarations in, a publishable result and private witnesses out.

    audit = audit_disclosures(in_memory(train, holdout, synthetic), [my_class], assignment=..., name="release")

Every class is measured first; the tests declared in the settings are then corrected together (Holm), and each class
gets one verdict. Needs no access to the generator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.disclosure.assignment import Assignment
from coalmine.auditor.disclosure.class_tests import (
    Users,
    claim_p_value,
    class_power,
    run_on_matches,
    run_on_similarities,
)
from coalmine.auditor.disclosure.feature_class import (
    DiscreteClass,
    FeatureClass,
    Matches,
    Material,
    Similarities,
)
from coalmine.auditor.disclosure.holm import holm
from coalmine.auditor.disclosure.reasons import reasons
from coalmine.auditor.disclosure.result import (
    ClassAudit,
    ClassTests,
    DeclaredTest,
    DisclosureAudit,
    DisclosureVerdict,
    Kind,
)
from coalmine.auditor.disclosure.settings import Settings
from coalmine.auditor.disclosure.witness import (
    Lead,
    Witness,
    leads_of_matches,
    leads_of_similarities,
    witnesses,
)
from coalmine.protocol.errors import StudyError
from coalmine.protocol.privacy import Assurance, PrivacyUnit

Mask = NDArray[np.bool_]
Watch = Callable[[str], AbstractContextManager[object]]


@dataclass(frozen=True)
class Described:
    """What else a result says about its data.

    Attributes:
        records, synthetic_records: how many. canaries: (n,) inserted canary users, ``None`` without any.
        unit: ``PrivacyUnit.RECORD`` where every row is a user of its own.
    """

    records: int
    synthetic_records: int
    canaries: Mask | None = None
    unit: PrivacyUnit = PrivacyUnit.USER
    warnings: tuple[str, ...] = ()
    facts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Audited:
    """A result that may be published, and what may not: (class, witnesses) in the order of the classes."""

    audit: DisclosureAudit
    witnesses: tuple[tuple[str, tuple[Witness, ...]], ...] = field(repr=False)


@dataclass(frozen=True)
class _Measured:
    tests: ClassTests
    without: ClassTests | None
    p_values: tuple[tuple[str, float, bool], ...]
    leads: list[Lead]


def audit_disclosures(
    material: Material,
    classes: Sequence[FeatureClass],
    assignment: Assignment,
    settings: Settings | None = None,
    described: Described | None = None,
    *,
    name: str = "disclosures",
    watch: Watch = lambda _: nullcontext(),
) -> Audited:
    """Run every class and every test.

    Args:
        assignment: see :func:`~coalmine.auditor.disclosure.assignment.declare`.
        watch: entered with the name of each stage.

    Raises:
        StudyError: no class, two of one name, or settings that have no formula for this assignment.
    """
    chosen = settings or Settings()
    names = [one.name for one in classes]
    if not names or len(set(names)) < len(names):
        raise StudyError("classes need different names, and at least one", where="classes", remedy="see --classes")
    told = described or Described(sum(1 for _ in material.private()), sum(1 for _ in material.synthetic()))
    measured = []
    for one in classes:
        with watch(one.name):
            measured.append(_measure(one, material, assignment, told.canaries, chosen))
    with watch("witnesses"):
        seen = witnesses(material, [one.leads for one in measured])
    declared = _corrected([one.p_values for one in measured])
    tests = sum(map(len, declared))
    claims = _claims(measured, assignment, chosen.claimed_eps)
    audits = tuple(
        _judge(one, found, own, tests, assignment, chosen, claim, shown)
        for one, found, own, claim, shown in zip(classes, measured, declared, claims, seen, strict=True)
    )
    known = [claim for claim in claims if claim is not None]
    train = material.train
    audit = DisclosureAudit(
        name=name,
        users=assignment.users,
        train=assignment.train,
        holdout=assignment.users - assignment.train,
        private_records=told.records,
        synthetic_records=told.synthetic_records,
        assignment=assignment.kind,
        p=assignment.p,
        adjacency=assignment.adjacency,
        unit=told.unit,
        assurance=assignment.assurance,
        alpha=chosen.alpha,
        delta=chosen.delta,
        classes=audits,
        claimed_eps=chosen.claimed_eps,
        claim_contradicted=None if chosen.claimed_eps is None else any(p <= chosen.alpha for p in holm(known)),
        canaries=_canary_counts(told.canaries, train),
        warnings=told.warnings + _heuristic(assignment),
        facts=told.facts,
    )
    return Audited(audit, tuple(zip(names, seen, strict=True)))


def _measure(
    one: FeatureClass, material: Material, assignment: Assignment, canaries: Mask | None, settings: Settings
) -> _Measured:
    train = material.train
    found: list[Matches] | Similarities
    if isinstance(one, DiscreteClass):
        found = one.matches(material, settings.ks)
        leads = leads_of_matches(found[0], train, settings.witnesses)
    else:
        found = one.similarities(material)
        leads = leads_of_similarities(found, train, settings.witnesses)

    def run(kept: Mask, name: str) -> ClassTests:
        users = Users(train, assignment, kept, f"{one.name}/{name}")
        if isinstance(found, Similarities):
            return run_on_similarities(found, users, settings)
        return run_on_matches(found, users, settings)

    tests = run(np.ones(len(train), bool), "all")
    without = None if canaries is None else run(~canaries, "without canaries")
    return _Measured(tests, without, tuple(_declared(tests, settings)), leads)


def _declared(tests: ClassTests, settings: Settings) -> list[tuple[str, float, bool]]:
    """Name, p-value and direction of the tests that count. Which can be run does not depend on the assignment."""
    found: list[tuple[str, float, bool]] = []
    if tests.sweeps and (match := tests.sweeps[0].match) is not None:
        found.append((f"feature match, k = {tests.sweeps[0].k}", match.p_value, True))
    first = next((one for one in tests.two_samples if one.quantile == settings.rarities[0]), None)
    if first is not None:
        found.append((f"two-sample, rarest {first.quantile:.0%}", first.p_value, first.closer > 0))
    if tests.user_match is not None:
        found.append(("user match", tests.user_match.p_value, True))
    return found


def _corrected(groups: Sequence[Sequence[tuple[str, float, bool]]]) -> list[tuple[DeclaredTest, ...]]:
    corrected = iter(holm([p for group in groups for _, p, _ in group]))
    return [tuple(DeclaredTest(name, p, next(corrected), towards) for name, p, towards in group) for group in groups]


def _claims(measured: Sequence[_Measured], assignment: Assignment, eps: float | None) -> list[float | None]:
    return [None if eps is None else claim_p_value(one.tests, assignment, eps) for one in measured]


def _judge(
    one: FeatureClass,
    found: _Measured,
    declared: tuple[DeclaredTest, ...],
    tests: int,
    assignment: Assignment,
    settings: Settings,
    claim: float | None,
    seen: tuple[Witness, ...],
) -> ClassAudit:
    power = class_power(found.tests, assignment, settings.alpha, tests)
    if any(test.rejects(settings.alpha) for test in declared):
        verdict = DisclosureVerdict.LEAKS
    else:
        verdict = DisclosureVerdict.NO_EVIDENCE if declared and power.enough else DisclosureVerdict.TOO_LITTLE
    return ClassAudit(
        name=one.name,
        kind=Kind.DISCRETE if found.tests.sweeps else Kind.SIMILARITY,
        notes=one.notes,
        tests=found.tests,
        declared=declared,
        power=power,
        verdict=verdict,
        reasons=reasons(one.name, verdict, found.tests, declared, power, assignment, settings),
        claim_p_value=claim,
        without_canaries=found.without,
        witnesses=tuple(witness.shape for witness in seen),
    )


def _canary_counts(canaries: Mask | None, train: Mask) -> tuple[int, int] | None:
    return None if canaries is None else (int((canaries & train).sum()), int((canaries & ~train).sum()))


def _heuristic(assignment: Assignment) -> tuple[str, ...]:
    if assignment.assurance is not Assurance.HEURISTIC:
        return ()
    return (
        "How users came into train and holdout was not declared. If the two differ in any other way than by chance, "
        "the tests see that too: every verdict here is heuristic.",
    )
