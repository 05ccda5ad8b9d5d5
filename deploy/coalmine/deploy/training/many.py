"""Many canaries in one run, each in on a coin of its own."""

from __future__ import annotations

import numpy as np

from coalmine.auditor.membership import canaries as crafted
from coalmine.auditor.membership.result import Subject
from coalmine.auditor.membership.scores import loss_drop
from coalmine.auditor.membership.single_run import audit_single_run
from coalmine.auditor.membership.suite import finding
from coalmine.clients.training.fast.shadows import initial, logits
from coalmine.clients.training.plan import Plan
from coalmine.deploy.study_training import ManyCanariesSection
from coalmine.deploy.training.experiment import Experiment
from coalmine.protocol.randomness import Purpose, stream


def many_subject(run: Experiment, plan: Plan, section: ManyCanariesSection) -> Subject:
    """Once a repetition, in one arm."""
    ready, audited = run.ready, run.ready.section.audit
    data = ready.data
    rng = stream(run.seed, Purpose.CANARY, user="one run")
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
        coins = stream(run.seed, Purpose.MEMBERSHIP, repetition, "one run").random((1, len(chosen))) < 0.5
        seeds = run.seeds(repetition, 1, "one run")
        shadows = run.train(run.common(chosen), plan, coins, seeds)
        before = logits(ready.spec, initial(ready.spec, int(seeds[0])) if run.start is None else run.start, x)
        score = loss_drop(before, shadows.logits[0], labels)
        evidence = audit_single_run(run.promised, score, coins[0], *section.guesses, audited.alpha)
        findings.append(finding(f"{len(chosen)} {section.kind}, one run", run.promised, evidence))
        gone.append(float((shadows.dropped[0, coins[0]] >= 0).mean()))
    share = float(np.mean(gone)) if plan.filter is not None else None
    return Subject(findings[0].subject, tuple(findings), share)
