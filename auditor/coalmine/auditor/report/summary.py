"""The numbers of an audited round that every reader needs, one row per attack."""

from __future__ import annotations

from dataclasses import dataclass

from coalmine.auditor.attacks import ATTACKS, CanaryKind
from coalmine.auditor.result import AttackAudit, CanaryAudit, RoundAudit
from coalmine.protocol.finding import Evidence, Verdict


@dataclass(frozen=True)
class Row:
    """One attack.

    Attributes:
        attack: its name. idea: one sentence. kind: whose presence is tested.
        exact: of the strongest canary. elsewhere: name of the other set of coordinates, largest exact epsilon there.
        monte_carlo, variance_reduced: the largest bound over the canaries, each canary at alpha / canaries.
        share: exact epsilon over the claim (PLD upper).
        strongest: the canary with the largest exact epsilon; ``mu_eff``, ``tpr`` and ``fpr`` are its own.
    """

    attack: str
    idea: str
    kind: CanaryKind
    exact: Evidence
    elsewhere: tuple[str, float] | None
    monte_carlo: Evidence
    variance_reduced: Evidence
    share: float
    strongest: CanaryAudit
    verdict: Verdict


def rows(audit: RoundAudit) -> tuple[Row, ...]:
    """One row per attack, in the order of the study."""
    return tuple(_row(attack, audit.claim.eps_pld_upper) for attack in audit.attacks)


def best(found: tuple[Row, ...], kind: CanaryKind | None = None) -> Row | None:
    """The row with the largest exact epsilon, of one kind of canary or of all; ``None`` where there is none."""
    candidates = [row for row in found if kind in (None, row.kind)]
    return max(candidates, key=lambda row: row.exact.eps_lower, default=None)


def most_counted(found: tuple[Row, ...]) -> Row | None:
    """The row whose trials certify most by counting; ``None`` where there is none."""
    return max(found, key=lambda row: row.monte_carlo.eps_lower, default=None)


def most_integrated(found: tuple[Row, ...]) -> Row | None:
    """The row whose trials certify most with the noise integrated; ``None`` where there is none."""
    return max(found, key=lambda row: row.variance_reduced.eps_lower, default=None)


def featured(audit: RoundAudit) -> tuple[Row, ...]:
    """The strongest attack on a real user and the strongest on a nonce user, where there are such."""
    found = rows(audit)
    return tuple(row for kind in CanaryKind if (row := best(found, kind)) is not None)


def numerical_error(audit: RoundAudit) -> float:
    """The largest certified numerical error of any exact epsilon in the audit."""
    exacts = [e for a in audit.attacks for c in a.canaries for e in (c.exact, *c.exact_elsewhere.values())]
    return max((e.error for e in exacts if e.error is not None), default=0.0)


def elsewhere_names(audit: RoundAudit) -> tuple[str, ...]:
    """The other sets of coordinates that were scored, in alphabetical order."""
    return tuple(sorted({name for a in audit.attacks for c in a.canaries for name in c.exact_elsewhere}))


def _row(attack: AttackAudit, claim: float) -> Row:
    known = ATTACKS[attack.name]
    strongest = attack.strongest
    others = [(name, e.eps_lower) for canary in attack.canaries for name, e in canary.exact_elsewhere.items()]
    return Row(
        attack=attack.name,
        idea=known.idea,
        kind=known.canary,
        exact=strongest.exact,
        elsewhere=max(others, key=lambda pair: pair[1], default=None),
        monte_carlo=max((c.monte_carlo for c in attack.canaries), key=lambda e: e.eps_lower),
        variance_reduced=max((c.variance_reduced for c in attack.canaries), key=lambda e: e.eps_lower),
        share=strongest.exact.eps_lower / claim,
        strongest=strongest,
        verdict=attack.finding.verdict,
    )
