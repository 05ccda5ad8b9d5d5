"""An attacker who sees predicted labels alone, against four ways to train: SGD, HAMP, DP-SGD, and its filter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coalmine.auditor.membership import canaries as crafted
from coalmine.auditor.membership.low_rates import LabelOnly, tpr_at
from coalmine.auditor.membership.scores import calibrated, label_only
from coalmine.clients.training.fast.shadows import Asked, seen_in
from coalmine.clients.training.plan import Augmentation, Hamp, Plan, Unprotected
from coalmine.deploy.study_training import LabelOnlySection
from coalmine.deploy.training.experiment import Experiment
from coalmine.protocol.privacy import Claim
from coalmine.protocol.randomness import Purpose, stream

RATES = (0.001, 0.01)


def defences(run: Experiment, section: LabelOnlySection) -> dict[str, tuple[Plan, Claim | None]]:
    """The four plans. HAMP masks confidences too, which leaves labels as they are."""
    protected = replace(run.plan, filter=None)
    mechanism = run.ready.agreed.mechanism
    ordinary = replace(protected, privacy=Unprotected(mechanism.q, mechanism.declared_size))
    found: dict[str, tuple[Plan, Claim | None]] = {
        "none (SGD)": (ordinary, None),
        "HAMP": (replace(ordinary, loss=Hamp(section.hamp_gamma, section.hamp_alpha)), None),
        "DP-SGD": (protected, run.promised),
    }
    if run.plan.filter is not None:
        found["DP-SGD with filter"] = (run.plan, run.promised)
    return found


def label_only_audit(run: Experiment, section: LabelOnlySection) -> tuple[LabelOnly, ...]:
    """Mislabeled canaries, each in about half of the models; the same coins and canaries for every defence."""
    data, alpha = run.ready.data, run.ready.section.audit.alpha
    rng = stream(run.seed, Purpose.CANARY, user="label only")
    chosen = [crafted.mislabeled(data.test.x, data.test.y, data.test.classes, rng) for _ in range(section.canaries)]
    labels = np.array([one.y for one in chosen])
    images = len(data.train.shape) == 3
    kind = Augmentation(section.views, section.shift if images else 0, False, section.jitter)
    views = seen_in(np.stack([one.x for one in chosen]), kind, run.seed)
    common = run.common(chosen, Asked(questions=views.reshape(-1, *data.train.shape)))
    coins = stream(run.seed, Purpose.MEMBERSHIP, user="label only").random((section.models, len(chosen))) < 0.5
    found = []
    for name, (plan, promised) in defences(run, section).items():
        shadows = run.train(common, plan, coins, run.seeds(0, section.models, "label only"))
        answers = shadows.answers.reshape(section.models, len(chosen), section.views)
        shares = np.stack([label_only(answers[:, number], label) for number, label in enumerate(labels)], axis=1)
        score = calibrated(shares, coins)
        found.append(
            LabelOnly(
                name,
                promised,
                float(shadows.accuracy.mean()),
                float((shadows.dropped[coins] >= 0).mean()) if plan.filter is not None else None,
                tuple(tpr_at(score[coins], score[~coins], rate, alpha) for rate in RATES),
                section.canaries,
                section.models,
                section.views,
            )
        )
    return tuple(found)
