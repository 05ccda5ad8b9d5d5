"""Audited rounds with made-up numbers."""

from dataclasses import replace

from coalmine.auditor.result import TradeOff
from coalmine.auditor.rounds.result import PathAudit, PrefixAudit
from coalmine.auditor.rounds.study import RoundsAudit
from coalmine.auditor.utility.result import References, Repeated, RoundUtility
from coalmine.auditor.waterfall import Waterfall
from coalmine.protocol.finding import Evidence
from coalmine.protocol.privacy import Adjacency, Assurance, Claim, Mechanism, PrivacyUnit, ThreatModel

CLAIMED = (1.3, 1.5, 1.65)
CURVE = TradeOff((0.0, 1.0), (0.0, 1.0), (), (), (), (), 1.0, (0.0, 0.0))


def path(attack, canary, share):
    def evidence(eps, assurance):
        return Evidence("method", assurance, eps)

    prefixes = tuple(
        PrefixAudit(
            rounds=number,
            threshold=0.0,
            tpr=0.1,
            fpr=0.01,
            monte_carlo=evidence(0.5 * share * eps, Assurance.FORMAL),
            variance_reduced=evidence(0.6 * share * eps, Assurance.FORMAL),
            exact=evidence(share * eps, Assurance.EXACT),
            exact_elsewhere={},
            waterfall=Waterfall(()),
            trade_off=CURVE,
        )
        for number, eps in enumerate(CLAIMED, 1)
    )
    return PathAudit(attack, canary, "probes", (8,) * 3, (0.1,) * 3, (0.1,) * 3, (1.0,) * 3, prefixes)


def rounds_audit(utility=(), attacks=("ordinary", "nonce-mu")):
    stated = Adjacency.ADD_REMOVE, PrivacyUnit.USER, ThreatModel.RELEASE_ONLY
    return RoundsAudit(
        study="s",
        mechanism=Mechanism(),
        claims=tuple(Claim(eps + 0.01, eps, eps, 1e-5, 0.1, 1.1, n, *stated) for n, eps in enumerate(CLAIMED, 1)),
        eligible=100,
        randomness="simulated",
        bank_digests=("a",) * 3,
        dataset_digest="d",
        alpha=0.05,
        trials=1000,
        paths={name: (path(name, 1, 0.5), path(name, 2, 0.9)) for name in attacks},
        utility=utility,
    )


REFERENCES = References(100, 10, Repeated((0.9, 0.92)), Repeated((0.2, 0.2)), Repeated((0.8,)), Repeated((0.5,)), 0.3)
UTILITY = tuple(
    RoundUtility(number, Repeated((0.2 * number, 0.2 * number + 0.1)), Repeated((0.5 + 0.05 * number,)), REFERENCES)
    for number in (1, 2, 3)
)
NO_LABELS = replace(REFERENCES, accuracy_real=None, accuracy_floor=None, majority=None)
