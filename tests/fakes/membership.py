"""A membership audit made up for tests of what is shown and tracked."""

from dataclasses import replace

import numpy as np

from coalmine.auditor.membership.disparate import Disparity, impact, shares
from coalmine.auditor.membership.low_rates import LabelOnly, tpr_at
from coalmine.auditor.membership.result import Arm, Audited, Drop, MembershipAudit, Subject, Trained
from coalmine.auditor.membership.suite import audit
from coalmine.protocol.dpsgd.claims import claim
from coalmine.protocol.dpsgd.mechanism import DpSgd

MECHANISM = DpSgd(q=0.5, sigma=2.0, clip=1.0, delta=1e-5, declared_size=100)


def trained():
    return Trained(
        "made-up", "gradient", claim(MECHANISM, 2), "Nobody.", 3, 2, 0.8, 0.1, 50, 6, {"data": "none"}, {"train": 1.0}
    )


def membership(shift=0.0, repetitions=2):
    promised = claim(MECHANISM, 2)
    arms = []
    for name in ("without filter", "with filter"):
        findings = []
        for number in range(repetitions):
            rng = np.random.default_rng([number, len(name)])
            findings.append(
                audit("mislabeled", promised, rng.standard_normal(200) + shift, rng.standard_normal(200), 0.05, rng)
            )
        arms.append(Arm(name, (Subject("mislabeled", tuple(findings), 1.0),), 0.8, 0.01, None, 0.1))
    return MembershipAudit(
        "made-up", promised, 0.05, 200, repetitions, tuple(arms), 0.1, ("A note.",), {"data": "none"}
    )


def group(promised, leak):
    """A group that leaks in any arm."""
    rng = np.random.default_rng(3)
    scores = rng.standard_normal((2, 100))
    return Subject(
        "group of 9 in gradient space",
        (audit("group", promised, scores[0] + leak, scores[1], 0.05, rng, group_size=9),),
        0.0,
    )


def everything(shift=0.0):
    """Every kind of finding at once; the group keeps its leak under the filter, the canary does not."""
    plain = membership(shift, repetitions=1)
    rng = np.random.default_rng(4)
    taken = shares(rng.random((4, 20)) < 0.2, np.arange(20) % 2, "class")
    before, after = plain.arms
    loud = membership(0.8, repetitions=1).arms[0].subjects[0] if not shift else before.subjects[0]
    arms = (
        replace(before, subjects=(loud, group(plain.claim, 4.0))),
        replace(
            after,
            subjects=(replace(after.subjects[0], drops=(Drop(0, 0.5), Drop(2, 0.3))), group(plain.claim, 4.0)),
            dropped=taken,
        ),
    )
    rates = tuple(tpr_at(rng.random(200) + 0.3, rng.random(200), rate) for rate in (0.001, 0.01))
    labels = tuple(LabelOnly(name, None, 0.9, None, rates, 20, 12, 4) for name in ("none (SGD)", "HAMP", "DP-SGD"))
    flags = rng.random((5, 20)) < 0.5
    seen = impact(flags, np.arange(20) % 3, np.arange(20) % 2, flags, flags, np.arange(20) % 2)
    return replace(plain, arms=arms, label_only=labels, disparate=(Disparity(0.05, seen, 5), Disparity(0.25, seen, 5)))


def one_study(shift=0.0):
    return Audited("made-up", (), (({}, everything(shift)),))


def swept():
    first = everything()
    second = replace(first, claim=claim(MECHANISM, 8))
    return Audited("made-up", ("training.eps",), (({"training.eps": 1.0}, first), ({"training.eps": 2.0}, second)))
