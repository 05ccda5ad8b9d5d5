"""The canaries of a study: crafted with what its attacker has, public samples and a model trained on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.membership import canaries as crafted
from coalmine.auditor.membership.canaries import Canary
from coalmine.auditor.membership.gradient_groups import just_below_the_filter
from coalmine.clients.training.fast.shadows import Common, Reference, norms_at_filterings
from coalmine.clients.training.plan import Plan
from coalmine.deploy.training.checks import NEED_PUBLIC
from coalmine.deploy.training.prepare import Prepared
from coalmine.protocol.dpsgd.terms import Scope
from coalmine.protocol.randomness import Purpose, stream

Array = NDArray[np.float64]
_REFERENCE_STEPS = 300
_FGSM_SHARE = 0.25
_BLANK_LABEL = 0
_BELOW = 0.9
"""Of the size that a filter of public samples would just leave."""


def craft(ready: Prepared, plan: Plan, start: Array | None, seed: int) -> tuple[list[Canary], list[str]]:
    """The canaries that can be tested, and notices about those that cannot."""
    data, section = ready.data, ready.section.audit
    rng = stream(seed, Purpose.CANARY)
    wrong = crafted.mislabeled(data.test.x, data.test.y, data.test.classes, rng)
    low, high = float(data.test.x.min()), float(data.test.x.max())
    reference: Reference | None = None
    found, notes = [], []
    for name in section.canaries:
        if name in NEED_PUBLIC and reference is None:
            reference = _reference(ready, seed)
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
                by_input = reference.exposed(x, label)[2]
                canary = crafted.fgsm(x, label, by_input, _FGSM_SHARE * (high - low), low, high)
            case "clipbkd":
                assert reference is not None
                canary = crafted.clipbkd(data.public.x, reference.logits)
            case "defence_aware":
                assert reference is not None
                canary, note = _defence_aware(ready, plan, start, wrong, reference, low, high, seed)
                notes.append(note)
        if any(crafted.already_there(canary, held.x, held.y) for held in (data.train, data.public)):
            notes.append(f"{name}: the data already hold this very sample, so its presence cannot be tested; left out.")
        else:
            found.append(canary)
    return found, notes


def _reference(ready: Prepared, seed: int) -> Reference:
    model = ready.section.model
    return Reference(ready.spec, ready.data.public, model.pretrain or _REFERENCE_STEPS, seed, model.pretrain_lr)


def _defence_aware(
    ready: Prepared,
    plan: Plan,
    start: Array | None,
    wrong: Canary,
    reference: Reference,
    low: float,
    high: float,
    seed: int,
) -> tuple[Canary, str]:
    """Optimised to stay below what the filter would take of *public* samples; the private ones are not looked at."""
    assert plan.filter is not None
    public = ready.data.public
    alone = ready.agreed.clients if ready.agreed.scope is Scope.CLIENT else 1
    share = len(public) / plan.privacy.declared_size
    rule = replace(plan.filter, k=max(1, round(plan.filter.k * alone * share)))
    own = replace(plan.privacy, declared_size=len(public))
    practice = Common(ready.spec, public, 0, ready.data.test, start, None)
    norms = norms_at_filterings(practice, replace(plan, filter=rule, privacy=own), seed)
    ceiling = _BELOW * just_below_the_filter(norms, public.y, rule.k)
    made = crafted.defence_aware(wrong, lambda x: reference.exposed(x, wrong.y), ceiling, low, high)
    (loss, norm, _, _), before = reference.exposed(made.x, made.y), reference.exposed(wrong.x, wrong.y)[1]
    return made, (
        f"defence_aware: on the public model its gradient has norm {norm:.2f}, to stay below {ceiling:.2f}, and its"
        f" loss is {loss:.2f}; the mislabeled sample that it began as has norm {before:.2f}."
    )
