"""A group of samples in gradient space, sized just below what the filter takes: against it the filter does not help."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.membership.gradient_groups import just_below_the_filter, one_hot
from coalmine.auditor.membership.result import Subject
from coalmine.auditor.membership.suite import audit
from coalmine.clients.training.fast.shadows import norms_at_filterings
from coalmine.clients.training.gradient_canaries import GradientCanaries
from coalmine.clients.training.plan import Plan
from coalmine.deploy.training.prepare import Prepared
from coalmine.deploy.training.shares import common_to, model_seeds, train_all
from coalmine.protocol.ports import Advance
from coalmine.protocol.privacy import Claim
from coalmine.protocol.randomness import Purpose, stream

_COORDINATE = 0
_BELOW = 0.9
"""Of the size that the filter of one run would just leave: other runs draw other batches and noise."""


def group_subject(
    ready: Prepared,
    plan: Plan,
    filtered: Plan,
    start: NDArray[np.float64] | None,
    promised: Claim,
    seed: int,
    advance: Advance,
) -> Subject:
    """Models with the whole group and models without; the score is how far the group's parameter was pushed.

    Args:
        plan: of this arm. filtered: the plan whose filter the group is sized for; without one its size is the clip.

    Raises:
        StudyError: a class so small that every member would be dropped.
    """
    section, size = ready.section.audit, ready.agreed.mechanism.clip
    if filtered.filter is not None:
        alone = common_to(ready, start, ())
        norms = norms_at_filterings(alone, filtered, seed)
        classes = alone.groups if alone.groups is not None else ready.data.train.y
        size = _BELOW * just_below_the_filter(norms, classes, filtered.filter.k)
    made = one_hot(section.group, _COORDINATE, size, ready.data.train.classes)
    common = common_to(ready, start, GradientCanaries(made.coordinate, made.size, made.label))
    findings, epochs = [], []
    for repetition in range(section.repetitions):
        models = section.models
        included = np.zeros((2 * models, section.group), np.bool_)
        included[:models] = True
        seeds = model_seeds(seed, repetition, 2 * models, "group")
        shadows = train_all(ready, common, plan, included, seeds, advance)
        rng = stream(seed, Purpose.SELECTION, repetition, "group")
        score = -shadows.touched
        name = f"group of {section.group} in gradient space"
        findings.append(
            audit(name, promised, score[:models], score[models:], section.alpha, rng, group_size=section.group)
        )
        epochs.append(float((shadows.dropped[:models] >= 0).mean()))
    dropped = float(np.mean(epochs)) if plan.filter is not None else None
    return Subject(findings[0].subject, tuple(findings), dropped)
