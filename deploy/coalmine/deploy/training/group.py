"""A group of samples in gradient space, sized just below what the filter takes: against it the filter does not help."""

from __future__ import annotations

import numpy as np

from coalmine.auditor.membership.gradient_groups import just_below_the_filter, one_hot
from coalmine.auditor.membership.result import Subject
from coalmine.auditor.membership.suite import audit
from coalmine.clients.training.fast.shadows import norms_at_filterings
from coalmine.clients.training.gradient_canaries import GradientCanaries
from coalmine.clients.training.plan import Plan
from coalmine.deploy.training.experiment import Experiment
from coalmine.protocol.randomness import Purpose, stream

_COORDINATE = 0
_BELOW = 0.9
"""Of the size that the filter of one run would just leave: other runs draw other batches and noise."""


def below_the_filter(run: Experiment) -> float:
    """The length of a gradient that the study's filter leaves alone; the clip where there is no filter.

    Raises:
        StudyError: a class so small that every member would be dropped.
    """
    if run.plan.filter is None:
        return run.ready.agreed.mechanism.clip
    alone = run.common(())
    norms = norms_at_filterings(alone, run.plan, run.seed)
    classes = alone.groups if alone.groups is not None else run.ready.data.train.y
    return _BELOW * just_below_the_filter(norms, classes, run.plan.filter.k)


def group_subject(run: Experiment, plan: Plan) -> Subject:
    """Models with the whole group and models without; the score is how far the group's parameter was pushed.

    Args:
        plan: of this arm; the group is sized for the study's filter in both.

    Raises:
        StudyError: a class so small that every member would be dropped.
    """
    section = run.ready.section.audit
    made = one_hot(section.group, _COORDINATE, below_the_filter(run), run.ready.data.train.classes)
    common = run.common(GradientCanaries(made.coordinate, made.size, made.label))
    findings, gone = [], []
    for repetition in range(section.repetitions):
        models = section.models
        included = np.zeros((2 * models, section.group), np.bool_)
        included[:models] = True
        shadows = run.train(common, plan, included, run.seeds(repetition, 2 * models, "group"))
        rng = stream(run.seed, Purpose.SELECTION, repetition, "group")
        score = -shadows.touched
        name = f"group of {section.group} in gradient space"
        findings.append(
            audit(name, run.promised, score[:models], score[models:], section.alpha, rng, group_size=section.group)
        )
        gone.append(float((shadows.dropped[:models] >= 0).mean()))
    dropped = float(np.mean(gone)) if plan.filter is not None else None
    return Subject(findings[0].subject, tuple(findings), dropped)
