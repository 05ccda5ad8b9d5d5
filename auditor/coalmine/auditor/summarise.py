"""From canaries to an attack's finding, and from replays to one p-value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from coalmine.auditor.result import AttackAudit, CanaryAudit, PoolAccount
from coalmine.protocol.finding import Evidence, Finding, Verdict
from coalmine.protocol.privacy import Assurance, Claim


def attack_audit(
    name: str, claim: Claim, canaries: Sequence[CanaryAudit], pools: Sequence[PoolAccount] = ()
) -> AttackAudit:
    """The largest evidence of each method over the attack's canaries, and what it says about the claim.

    The family-wise level holds because each canary's bound already has its share of alpha.
    """
    evidence = tuple(
        max(column, key=lambda found: found.eps_lower)
        for column in zip(*(canary.evidence for canary in canaries), strict=True)
    )
    return AttackAudit(Finding(name, claim, evidence, verdict(claim, evidence)), tuple(canaries), tuple(pools))


def verdict(claim: Claim, evidence: Iterable[Evidence]) -> Verdict:
    """Contradicted when evidence that proves something exceeds the pessimistic end of the claim."""
    proved = (found.eps_lower for found in evidence if found.assurance is not Assurance.HEURISTIC)
    return Verdict.CONTRADICTED if max(proved, default=0.0) > claim.eps_pld_upper else Verdict.CONSISTENT


def replay_p_value(attacks: Iterable[AttackAudit]) -> float | None:
    """Whether any replay disagrees with the model: the smallest p-value, Bonferroni-corrected for all of them."""
    values = [
        value
        for attack in attacks
        for canary in attack.canaries
        if canary.replay is not None
        for value in (canary.replay.p_absent, canary.replay.p_eligible)
    ]
    return min(1.0, min(values) * len(values)) if values else None
