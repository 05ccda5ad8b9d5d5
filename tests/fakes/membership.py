"""A membership audit made up for tests of what is shown and tracked."""

import numpy as np

from coalmine.auditor.membership.result import Arm, MembershipAudit, Subject, Trained
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
