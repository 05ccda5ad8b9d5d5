"""`coalmine audit training`: shadow models of a study's plan, spread over Ray workers of one thread each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.membership import canaries as crafted
from coalmine.auditor.membership.canaries import Canary
from coalmine.auditor.membership.result import Arm, MembershipAudit, Subject
from coalmine.auditor.membership.scores import logit_scaled_confidence, loss_drop
from coalmine.auditor.membership.single_run import audit_single_run
from coalmine.auditor.membership.suite import audit, finding
from coalmine.clients.training.fast.shadows import Reference, Shadows, initial, logits
from coalmine.clients.training.fast.shadows import accuracy as accuracy_of
from coalmine.clients.training.plan import Plan
from coalmine.deploy.progress import Stages
from coalmine.deploy.study import Study
from coalmine.deploy.study_training import ManyCanariesSection
from coalmine.deploy.training.group import group_subject
from coalmine.deploy.training.prepare import Prepared, start_of
from coalmine.deploy.training.shares import common_to, model_seeds, train_all
from coalmine.protocol.dpsgd.claims import claim
from coalmine.protocol.dpsgd.terms import Mode
from coalmine.protocol.errors import StudyError
from coalmine.protocol.finding import Finding
from coalmine.protocol.ports import Advance
from coalmine.protocol.privacy import Claim
from coalmine.protocol.randomness import Purpose, stream

Array = NDArray[np.float64]
_FILTERED, _UNFILTERED = "with filter", "without filter"
_REFERENCE_STEPS = 300
_FOR_ACCURACY = 16
_FGSM_SHARE = 0.25
_BLANK_LABEL = 0


@dataclass(frozen=True, eq=False)
class Repetition:
    """One repetition of the whole experiment in one arm."""

    findings: tuple[Finding, ...]
    shadows: Shadows
    accuracy: Array


def audit_training(study: Study, ready: Prepared, stages: Stages) -> MembershipAudit:
    """Train models with and without each canary, in every arm, and report every convention. Ray must be running.

    Raises:
        CoalmineError: bad input, or a model that diverged.
    """
    section, agreed = ready.section.audit, ready.agreed
    if agreed.mode is not Mode.GRADIENT:
        raise StudyError(
            "shadow models train in gradient mode", where="training.mode", remedy="audit the gradient mode"
        )
    with stages.stage("accounting"):
        promised = claim(agreed.mechanism, agreed.steps)
    with stages.stage("canaries"):
        start = start_of(ready, study.seed)
        chosen, notes = _craft(ready, start, study.seed)
    plan = Plan(agreed.mechanism, agreed.steps, agreed.optimiser, agreed.filter)
    plans = {_FILTERED: plan} if agreed.filter is not None else {}
    if section.unfiltered or agreed.filter is None:
        plans = {_UNFILTERED: replace(plan, filter=None), **plans}
    total = (
        len(plans)
        * section.repetitions
        * (_models(len(chosen), section.models) + bool(section.one_run) + 2 * section.models * bool(section.group))
    )
    total += len(plans) * _FOR_ACCURACY * section.random_start
    arms = []
    with stages.stage("shadow models", total, "models") as advance:
        for name, one in plans.items():
            runs = [
                _threshold(ready, one, chosen, start, promised, study.seed, repetition, advance)
                for repetition in range(section.repetitions)
            ]
            subjects = _subjects(chosen, runs, section.models)
            if section.one_run is not None:
                subjects = (*subjects, _many(ready, one, section.one_run, start, promised, study.seed, advance))
            if section.group:
                subjects = (*subjects, group_subject(ready, one, plan, start, promised, study.seed, advance))
            random_start = _from_random(ready, one, study.seed, advance) if section.random_start else None
            every = np.concatenate([run.accuracy for run in runs])
            lost = float(np.concatenate([run.shadows.lost for run in runs]).mean())
            arms.append(Arm(name, subjects, float(every.mean()), float(every.std()), random_start, lost))
    return MembershipAudit(
        study=study.study,
        claim=promised,
        alpha=section.alpha,
        models=section.models,
        repetitions=section.repetitions,
        arms=tuple(arms),
        accuracy_before=accuracy_of(
            ready.spec, initial(ready.spec, study.seed) if start is None else start, ready.data.test
        ),
        notes=(*notes, *_notes(ready)),
        facts=ready.facts(study.seed),
        seconds=dict(stages.seconds),
    )


def _craft(ready: Prepared, start: Array | None, seed: int) -> tuple[list[Canary], list[str]]:
    """The canaries that can be tested, and notices about those that cannot."""
    data, section = ready.data, ready.section.audit
    rng = stream(seed, Purpose.CANARY)
    wrong = crafted.mislabeled(data.test.x, data.test.y, data.test.classes, rng)
    low, high = float(data.test.x.min()), float(data.test.x.max())
    reference: Reference | None = None
    found, notes = [], []
    for name in section.canaries:
        if name in ("fgsm", "clipbkd") and reference is None:
            if len(data.public) < 2:
                raise StudyError(
                    f"{name} needs a public reference model", where="training.data.public", remedy="set it above 1"
                )
            steps = ready.section.model.pretrain or _REFERENCE_STEPS
            reference = Reference(ready.spec, data.public, steps, seed, ready.section.model.pretrain_lr)
        match name:
            case "blank":
                canary = crafted.blank(data.train.shape, _BLANK_LABEL)
            case "mislabeled":
                canary = wrong
            case "interpolated":
                canary = crafted.interpolated(wrong, section.interpolation)
            case "sparse":
                canary = crafted.sparse(data.train.shape, data.train.classes, rng, value=high)
            case "fgsm":
                assert reference is not None
                row = int(rng.integers(len(data.public)))
                x, label = np.asarray(data.public.x[row], np.float64), int(data.public.y[row])
                step = _FGSM_SHARE * (high - low)
                canary = crafted.fgsm(x, label, reference.by_input(x, label), step, low, high)
            case "clipbkd":
                assert reference is not None
                canary = crafted.clipbkd(data.public.x, reference.logits)
        if any(crafted.already_there(canary, held.x, held.y) for held in (data.train, data.public)):
            notes.append(f"{name}: the data already hold this very sample, so its presence cannot be tested; left out.")
        else:
            found.append(canary)
    if not found and section.one_run is None and not section.group:
        raise StudyError("no canary is left", where="training.audit.canaries", remedy="name others")
    return found, notes


def _threshold(
    ready: Prepared,
    plan: Plan,
    chosen: Sequence[Canary],
    start: Array | None,
    promised: Claim,
    seed: int,
    repetition: int,
    advance: Advance,
) -> Repetition:
    """Models with each canary alone, and models without any; all conventions on the same scores."""
    section = ready.section.audit
    models, m = section.models, len(chosen)
    included = np.zeros((_models(m, models), m), np.bool_)
    for number in range(m):
        included[number * models : (number + 1) * models, number] = True
    shadows = train_all(
        ready,
        common_to(ready, start, chosen),
        plan,
        included,
        model_seeds(seed, repetition, len(included), "shadow models"),
        advance,
    )
    findings = []
    for number, canary in enumerate(chosen):
        score = logit_scaled_confidence(shadows.logits[:, number], canary.y)
        rng = stream(seed, Purpose.SELECTION, repetition, canary.name)
        present, absent = score[number * models : (number + 1) * models], score[m * models :]
        findings.append(audit(canary.name, promised, present, absent, section.alpha, rng))
    return Repetition(tuple(findings), shadows, shadows.accuracy[m * models :])


def _many(
    ready: Prepared,
    plan: Plan,
    section: ManyCanariesSection,
    start: Array | None,
    promised: Claim,
    seed: int,
    advance: Advance,
) -> Subject:
    """Many canaries in one run, each in on a coin of its own, once a repetition."""
    data, audited = ready.data, ready.section.audit
    rng = stream(seed, Purpose.CANARY, user="one run")
    high = float(data.test.x.max())
    chosen = [
        crafted.sparse(data.train.shape, data.train.classes, rng, value=high)
        if section.kind == "sparse"
        else crafted.mislabeled(data.test.x, data.test.y, data.test.classes, rng)
        for _ in range(section.canaries)
    ]
    x, labels = np.stack([one.x for one in chosen]), np.array([one.y for one in chosen])
    findings, gone = [], []
    for repetition in range(audited.repetitions):
        coins = stream(seed, Purpose.MEMBERSHIP, repetition, "one run").random((1, len(chosen))) < 0.5
        seeds = model_seeds(seed, repetition, 1, "one run")
        shadows = train_all(ready, common_to(ready, start, chosen), plan, coins, seeds, advance)
        before = logits(ready.spec, initial(ready.spec, int(seeds[0])) if start is None else start, x)
        score = loss_drop(before, shadows.logits[0], labels)
        evidence = audit_single_run(promised, score, coins[0], *section.guesses, audited.alpha)
        findings.append(finding(f"{len(chosen)} {section.kind}, one run", promised, evidence))
        gone.append(float((shadows.dropped[0, coins[0]] >= 0).mean()))
    dropped = float(np.mean(gone)) if plan.filter is not None else None
    return Subject(findings[0].subject, tuple(findings), dropped)


def _from_random(ready: Prepared, plan: Plan, seed: int, advance: Advance) -> float:
    none = np.zeros((_FOR_ACCURACY, 0), np.bool_)
    seeds = model_seeds(seed, 0, _FOR_ACCURACY, "random start")
    return float(train_all(ready, common_to(ready, None, ()), plan, none, seeds, advance).accuracy.mean())


def _subjects(chosen: Sequence[Canary], runs: Sequence[Repetition], models: int) -> tuple[Subject, ...]:
    found = []
    for number, canary in enumerate(chosen):
        held = slice(number * models, (number + 1) * models)
        epochs = np.concatenate([run.shadows.dropped[held, number] for run in runs])
        gone = epochs[epochs >= 0]
        median = float(np.median(gone)) if len(gone) > len(epochs) / 2 else None
        found.append(Subject(canary.name, tuple(run.findings[number] for run in runs), median))
    return tuple(found)


def _models(canaries: int, models: int) -> int:
    return (canaries + 1) * models if canaries else _FOR_ACCURACY


def _notes(ready: Prepared) -> tuple[str, ...]:
    section = ready.section.audit
    told = [
        f"Each bound holds at {100 * (1 - section.alpha):g} % by itself; formal ones hold for the attack that was run,"
        " heuristic ones prove nothing. A bound near its ceiling says nothing about safety.",
        "All canaries of an arm are compared with the same models without canary: rows are correlated.",
        "The attacker sees the final model only (input-space canary, hidden state). Shadow models come from the"
        " fast trainer, which gives the numbers of the Flower apps up to rounding.",
    ]
    if section.group:
        told.append(
            "The group's attacker reads one parameter of the final model; its bounds are about all members together,"
            " the claim is about one record, and so no verdict follows."
        )
    if ready.agreed.dropout:
        told.append("Lost answers are not modelled: shadow models hear every client.")
    return tuple(told)
