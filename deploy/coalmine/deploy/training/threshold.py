"""Models with each canary alone and models without any; all conventions on the same scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.membership.canaries import Canary
from coalmine.auditor.membership.disparate import Share, shares
from coalmine.auditor.membership.onion import onion
from coalmine.auditor.membership.result import Drop, Subject
from coalmine.auditor.membership.scores import logit_scaled_confidence
from coalmine.auditor.membership.suite import audit, finding
from coalmine.clients.training.fast.shadows import Asked, Shadows
from coalmine.clients.training.plan import Plan
from coalmine.deploy.training.experiment import Experiment
from coalmine.protocol.finding import Finding
from coalmine.protocol.randomness import Purpose, stream

Array = NDArray[np.float64]
FOR_ACCURACY = 16
"""Models without a canary where no canary asks for more."""


@dataclass(frozen=True, eq=False)
class Repetition:
    """One repetition of the whole experiment in one arm."""

    findings: tuple[Finding, ...]
    onions: tuple[Finding, ...]
    shadows: Shadows
    without: slice

    @property
    def accuracy(self) -> Array:
        """Of the models without a canary."""
        return self.shadows.accuracy[self.without]


def count(canaries: int, models: int) -> int:
    """How many models a repetition trains."""
    return (canaries + 1) * models if canaries else FOR_ACCURACY


def threshold(run: Experiment, plan: Plan, chosen: Sequence[Canary], repetition: int) -> Repetition:
    """One repetition of one arm."""
    section = run.ready.section.audit
    models, m = section.models, len(chosen)
    included = np.zeros((count(m, models), m), np.bool_)
    for number in range(m):
        included[number * models : (number + 1) * models, number] = True
    common = run.common(chosen, Asked(losses=section.onion, each=True))
    shadows = run.train(common, plan, included, run.seeds(repetition, len(included), "shadow models"))
    without = slice(m * models, None)
    findings, onions = [], []
    for number, canary in enumerate(chosen):
        score, own = logit_scaled_confidence(shadows.logits[:, number], canary.y), _own(number, models)
        rng = stream(run.seed, Purpose.SELECTION, repetition, canary.name)
        findings.append(audit(canary.name, run.promised, score[own], score[without], section.alpha, rng))
        if section.onion:
            rng = stream(run.seed, Purpose.SELECTION, repetition, f"onion {canary.name}")
            layers = onion(-shadows.losses[own], -shadows.losses[without], run.promised.delta, section.alpha, rng)
            evidence = (layers.holdout, layers.strongest)
            onions.append(finding(f"{canary.name} by others (onion)", run.promised, evidence))
    return Repetition(tuple(findings), tuple(onions), shadows, without)


def subjects(
    chosen: Sequence[Canary], runs: Sequence[Repetition], models: int, *, filtered: bool
) -> tuple[Subject, ...]:
    """What all repetitions of an arm found."""
    found = []
    for number, canary in enumerate(chosen):
        epochs = np.concatenate([run.shadows.dropped[_own(number, models), number] for run in runs])
        gone = epochs[epochs >= 0]
        median = float(np.median(gone)) if len(gone) > len(epochs) / 2 else None
        drops = (
            tuple(Drop(int(epoch), float((epochs == epoch).mean())) for epoch in np.unique(gone)) if filtered else ()
        )
        found.append(Subject(canary.name, tuple(run.findings[number] for run in runs), median, drops))
    for number in range(len(runs[0].onions)):
        findings = tuple(run.onions[number] for run in runs)
        found.append(Subject(findings[0].subject, findings, None))
    return tuple(found)


def dropped(run: Experiment, runs: Sequence[Repetition]) -> tuple[Share, ...]:
    """Share of each class, and of each subgroup, that the filter took of models without a canary."""
    data = run.ready.data.train
    gone = np.concatenate([one.shadows.gone[one.without] for one in runs])
    groups = () if data.group is None else shares(gone, data.group, "group")
    return (*shares(gone, data.y, "class"), *groups)


def _own(number: int, models: int) -> slice:
    return slice(number * models, (number + 1) * models)
