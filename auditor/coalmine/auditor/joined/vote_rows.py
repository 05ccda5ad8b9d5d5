"""Rows of audits of Private Evolution: one round, several, and many canaries in one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coalmine.auditor.attacks import ATTACKS
from coalmine.auditor.joined.row import Kind, Promise, Row, Setting, largest, named
from coalmine.auditor.one_run_audit import OneRunStudy
from coalmine.auditor.report.wording import releases
from coalmine.auditor.result import RoundAudit
from coalmine.auditor.rounds.study import RoundsAudit, contradicted
from coalmine.protocol.errors import StorageError
from coalmine.protocol.finding import Evidence, Verdict
from coalmine.protocol.privacy import Assurance, Claim


def round_rows(audit: RoundAudit, values: Mapping[str, object] | None = None) -> tuple[Row, ...]:
    """One row per attack: of each method the largest evidence over its canaries.

    Args:
        values: of the swept keys, where the audit is a point of a sweep.

    Raises:
        StorageError: an attack that this version does not know.
    """
    return tuple(
        _row(
            named(audit.study, values or {}),
            audit.claim,
            one.name,
            f"{_canary(one.name)}, {len(one.canaries)} canaries",
            one.finding.evidence,
            1 - audit.alpha,
            one.finding.verdict is Verdict.CONTRADICTED,
        )
        for one in audit.attacks
    )


def rounds_rows(audit: RoundsAudit) -> tuple[Row, ...]:
    """One row per attack after the last round. A contradiction after any round is told.

    Raises:
        StorageError: an attack that this version does not know.
    """
    last, broken = audit.claims[-1], contradicted(audit)
    found = []
    for attack, paths in audit.paths.items():
        evidence = [one for path in paths for one in path.prefixes[last.rounds - 1].evidence]
        best = [max(column, key=lambda one: one.eps_lower) for column in _columns(evidence)]
        replicas = audit.replicas.get(attack, ())[last.rounds - 1 : last.rounds]
        after = sorted(rounds for name, rounds in broken if name == attack)
        note = "conditional on the banks that came out"
        if after:
            note += f"; contradicted after round {', '.join(map(str, after))}"
        found.append(
            _row(
                f"{audit.study} (after {last.rounds} rounds)",
                last,
                attack,
                f"{_canary(attack)}, {len(paths)} canaries",
                [*best, *replicas],
                1 - audit.alpha,
                bool(after),
                note,
            )
        )
    return tuple(found)


def one_run_rows(found: OneRunStudy) -> tuple[Row, ...]:
    """One row. The verdict rests on the formal tests of the claim itself, not on the bounds."""
    audit = found.audit
    return (
        _row(
            found.study,
            audit.claim,
            "one run",
            f"{audit.guesses.canaries} nonce users, each in on its own coin",
            audit.evidence,
            1 - audit.level,
            audit.verdict is Verdict.CONTRADICTED,
        ),
    )


def _row(
    study: str,
    claim: Claim,
    attack: str,
    canary: str,
    evidence: Sequence[Evidence],
    level: float,
    against: bool,
    note: str = "",
) -> Row:
    return Row(
        study=study,
        kind=Kind.PE,
        mechanism=f"{releases(claim)}, q = {claim.q:g}, σ = {claim.sigma:g}",
        attacker=claim.threat_model.value,
        attack=attack,
        canary=canary,
        setting=Setting(claim.unit.value, claim.adjacency, claim.delta),
        claim=Promise(claim.eps_pld_upper, claim.assurance),
        exact=largest(evidence, Assurance.EXACT),
        formal=largest(evidence, Assurance.FORMAL, level),
        heuristic=largest(evidence, Assurance.HEURISTIC),
        verdict=(Verdict.CONTRADICTED if against else Verdict.CONSISTENT).value,
        contradicted=against,
        note=note,
    )


def _canary(attack: str) -> str:
    if attack not in ATTACKS:
        raise StorageError(f"this version does not know the attack {attack!r}", remedy="use the version that wrote it")
    return ATTACKS[attack].canary.value


def _columns(evidence: Sequence[Evidence]) -> list[list[Evidence]]:
    """By method's place: each canary has the same three."""
    each: dict[str, list[Evidence]] = {}
    for one in evidence:
        each.setdefault(one.method, []).append(one)
    return list(each.values())
