"""`coalmine audit training`: shadow models of a study's plan, spread over Ray workers of one thread each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coalmine.auditor.membership.canaries import Canary
from coalmine.auditor.membership.disparate import Disparity
from coalmine.auditor.membership.low_rates import LabelOnly
from coalmine.auditor.membership.result import Arm, MembershipAudit
from coalmine.clients.training.fast.shadows import accuracy as accuracy_of
from coalmine.clients.training.fast.shadows import initial
from coalmine.clients.training.plan import Plan
from coalmine.deploy.progress import Stages
from coalmine.deploy.study import Study
from coalmine.deploy.training.checks import unmodelled
from coalmine.deploy.training.crafting import craft
from coalmine.deploy.training.disparate import disparate_audit
from coalmine.deploy.training.experiment import Experiment
from coalmine.deploy.training.group import group_subject
from coalmine.deploy.training.label_only import defences, label_only_audit
from coalmine.deploy.training.many import many_subject
from coalmine.deploy.training.prepare import Prepared, start_of
from coalmine.deploy.training.shelf import Shelf
from coalmine.deploy.training.threshold import FOR_ACCURACY, count, dropped, subjects, threshold
from coalmine.deploy.training.white_box import white_box_subject
from coalmine.protocol.dpsgd.claims import claim
from coalmine.protocol.dpsgd.mechanism import DpSgd, Sampling
from coalmine.protocol.errors import StudyError

FILTERED, UNFILTERED = "with filter", "without filter"


def audit_training(study: Study, ready: Prepared, stages: Stages, shelf: Shelf) -> MembershipAudit:
    """Train models with and without each canary, in every arm, and report every convention. Ray must be running.

    Args:
        ready: checked by :func:`auditable`. shelf: what is on it is not trained again.

    Raises:
        CoalmineError: bad input, or a model that diverged.
    """
    section, agreed = ready.section.audit, ready.agreed
    mechanism = mechanism_of(ready)
    with stages.stage("accounting"):
        promised = claim(mechanism, agreed.steps)
    plan = Plan(mechanism, agreed.steps, agreed.optimiser, agreed.filter)
    with stages.stage("canaries"):
        start = start_of(ready, study.seed)
        chosen, notes = craft(ready, plan, start, study.seed)
        rest = (section.one_run, section.group, section.white_box, section.label_only, section.disparate)
        if not chosen and not any(rest):
            raise StudyError("no canary is left", where="training.audit.canaries", remedy="name others")
    run = Experiment(ready, start, promised, plan, study.seed, shelf, lambda _: None)
    arms = _arms(run, chosen, stages)
    label_only: tuple[LabelOnly, ...] = ()
    disparate: tuple[Disparity, ...] = ()
    if section.label_only is not None:
        total = len(defences(run, section.label_only)) * section.label_only.models
        with stages.stage("label only", total, "models") as advance:
            label_only = label_only_audit(run.with_advance(advance), section.label_only)
    if section.disparate is not None:
        total = 2 * max(1, len(section.disparate.minority)) * section.disparate.models
        with stages.stage("disparate impact", total, "models") as advance:
            disparate = disparate_audit(run.with_advance(advance), section.disparate)
    return MembershipAudit(
        study=study.study,
        claim=promised,
        alpha=section.alpha,
        models=section.models,
        repetitions=section.repetitions,
        arms=arms,
        accuracy_before=accuracy_of(
            ready.spec, initial(ready.spec, study.seed) if start is None else start, ready.data.test
        ),
        notes=(*notes, *_notes(ready)),
        facts=ready.facts(study.seed),
        seconds=dict(stages.seconds),
        label_only=label_only,
        disparate=disparate,
    )


def mechanism_of(ready: Prepared) -> DpSgd:
    """Of the shadow models: the study's own, but for batches that its audit shuffles."""
    return replace(ready.agreed.mechanism, sampling=Sampling(ready.section.audit.sampling))


def _arms(run: Experiment, chosen: list[Canary], stages: Stages) -> tuple[Arm, ...]:
    section = run.ready.section.audit
    plans = {FILTERED: run.plan} if run.plan.filter is not None else {}
    if section.unfiltered or run.plan.filter is None:
        plans = {UNFILTERED: replace(run.plan, filter=None), **plans}
    pairs = 2 * section.models * (bool(section.group) + section.white_box)
    repeated = count(len(chosen), section.models) + bool(section.one_run) + pairs
    total = len(plans) * (section.repetitions * repeated + FOR_ACCURACY * section.random_start)
    with stages.stage("shadow models", total, "models") as advance:
        return tuple(_arm(run.with_advance(advance), name, plan, chosen) for name, plan in plans.items())


def _arm(run: Experiment, name: str, plan: Plan, chosen: list[Canary]) -> Arm:
    section, filtered = run.ready.section.audit, plan.filter is not None
    runs = [threshold(run, plan, chosen, repetition) for repetition in range(section.repetitions)]
    found = subjects(chosen, runs, section.models, filtered=filtered)
    if section.one_run is not None:
        found = (*found, many_subject(run, plan, section.one_run))
    if section.group:
        found = (*found, group_subject(run, plan))
    if section.white_box:
        found = (*found, white_box_subject(run, plan))
    every = np.concatenate([one.accuracy for one in runs])
    lost = float(np.concatenate([one.shadows.lost for one in runs]).mean())
    random_start = _from_random(run, plan) if section.random_start else None
    taken = dropped(run, runs) if filtered else ()
    return Arm(name, found, float(every.mean()), float(every.std()), random_start, lost, taken)


def _from_random(run: Experiment, plan: Plan) -> float:
    own = replace(run, start=None)
    nobody = np.zeros((FOR_ACCURACY, 0), np.bool_)
    return float(own.train(own.common(()), plan, nobody, run.seeds(0, FOR_ACCURACY, "random start")).accuracy.mean())


def _notes(ready: Prepared) -> tuple[str, ...]:
    section = ready.section.audit
    told = [
        f"Each bound holds at {100 * (1 - section.alpha):g} % by itself; formal ones hold for the attack that was run,"
        " heuristic ones prove nothing. A bound near its ceiling says nothing about safety.",
        "All canaries of an arm are compared with the same models without canary: rows are correlated.",
        "The attacker sees the final model only (input-space canary, hidden state). Shadow models come from the"
        " fast trainer, which gives the numbers of the Flower apps up to rounding.",
    ]
    if mechanism_of(ready).sampling is Sampling.SHUFFLED:
        told.append(
            "Batches are shuffled, which the accounting (Poisson batches) does not cover: the claim is heuristic. A"
            " bound above it would speak against that use of the claim, not against the mechanism's code."
        )
    if section.group:
        told.append(
            "The group's attacker reads one parameter of the final model; its bounds are about all members together,"
            " the claim is about one record, and so no verdict follows."
        )
    if section.white_box:
        told.append(
            "The gradient canary's attacker sees every noised update. Its models have one more input, which is 0 for"
            " every sample; the score's exact epsilon is that of the noise that was measured in them."
        )
    if section.onion:
        told.append(
            "Onion: every other training sample guesses whether the canary was there. The formal bound chooses the"
            " sample on half of the models; the heuristic one is the largest of all samples, uncorrected."
        )
    return (*told, *unmodelled(ready))
