"""A canary in gradient space and an attacker who sees every noised update: the strongest attack that the claim covers.

The models get one more input that is 0 for every sample. Nobody's gradient touches the weights of that input, so one of
them carries the canary and the noise alone. This changes nothing in the mechanism that the claim is about.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coalmine.auditor.membership.result import Subject
from coalmine.auditor.membership.suite import finding
from coalmine.auditor.membership.white_box import white_box
from coalmine.clients.training.fast.shadows import Asked
from coalmine.clients.training.gradient_canaries import GradientCanaries
from coalmine.clients.training.plan import Plan
from coalmine.clients.training.source import Samples
from coalmine.clients.training.table import Table
from coalmine.deploy.training.experiment import Experiment
from coalmine.deploy.training.group import below_the_filter
from coalmine.deploy.training.prepare import start_of
from coalmine.protocol.privacy import Assurance
from coalmine.protocol.randomness import Purpose, stream

_LABEL = 0
_NAME = "gradient canary, every update"


def white_box_subject(run: Experiment, plan: Plan) -> Subject:
    """In one arm, with and without the canary, each repetition on its own. The first layer must be linear."""
    section, clip = run.ready.section.audit, run.ready.agreed.mechanism.clip
    run = _with_unused_input(run)
    size = clip if plan.filter is None else min(clip, below_the_filter(run))
    unused = run.ready.spec.shape[0] - 1  # weight of the first unit for the last input
    canary = GradientCanaries(np.array([unused]), np.array([size]), np.array([_LABEL]))
    common, models = run.common(canary, Asked(updates=True)), section.models
    included = np.repeat([True, False], models)[:, None]
    every, gone = [], []
    for repetition in range(section.repetitions):
        shadows = run.train(common, plan, included, run.seeds(repetition, 2 * models, "white box"))
        seen = shadows.updates / size
        rng = stream(run.seed, Purpose.SELECTION, repetition, "white box")
        every.append(white_box(run.promised, clip / size, seen[:models], seen[models:], section.alpha, rng))
        gone.append(float((shadows.dropped[:models] >= 0).mean()))
    if any(gone):  # the score's own epsilon is that of a canary which stays; trials say what is left of one that goes
        every = [tuple(one for one in evidence if one.assurance is not Assurance.EXACT) for evidence in every]
    findings = tuple(finding(_NAME, run.promised, evidence) for evidence in every)
    return Subject(_NAME, findings, float(np.mean(gone)) if plan.filter is not None else None)


def _with_unused_input(run: Experiment) -> Experiment:
    ready = run.ready
    data = Samples(*(_widened(part) for part in (ready.data.train, ready.data.public, ready.data.test)))
    widened = replace(ready, data=data, spec=replace(ready.spec, shape=data.train.shape))
    return replace(run, ready=widened, start=start_of(widened, run.seed))


def _widened(data: Table) -> Table:
    """(n, d + 1) features, the last one 0."""
    flat = data.x.reshape(len(data), int(np.prod(data.shape)))
    return replace(data, x=np.concatenate([flat, np.zeros((len(flat), 1), flat.dtype)], axis=1))
