"""Rows of disclosure audits of synthetic data: those of their tests that bound an epsilon."""

from __future__ import annotations

from coalmine.auditor.disclosure.result import ClassAudit, DisclosureAudit
from coalmine.auditor.joined.row import Bound, Kind, Promise, Row, Setting
from coalmine.protocol.finding import Verdict
from coalmine.protocol.privacy import Assurance


def disclosure_rows(audit: DisclosureAudit) -> tuple[Row, ...]:
    """Up to two rows per class: the declared feature match (delta = 0) and the user match, where there is one."""
    return tuple(row for one in audit.classes for row in _rows(audit, one))


def without_epsilon(audit: DisclosureAudit) -> tuple[str, ...]:
    """Classes in which nothing could be counted: they bound no epsilon and have no row."""
    return tuple(one.name for one in audit.classes if not _rows(audit, one))


def _rows(audit: DisclosureAudit, one: ClassAudit) -> list[Row]:
    found = []
    match = one.tests.sweeps[0].match if one.tests.sweeps else None
    if match is not None:
        found.append(_row(audit, one, "feature match", f"feature match, {match.method}", match.eps_lower, 0.0))
    guessed = one.tests.user_match
    if guessed is not None:
        found.append(
            _row(audit, one, "user match", f"user match, {guessed.rule}", guessed.eps_lower, float(guessed.delta))
        )
    return found


def _row(audit: DisclosureAudit, one: ClassAudit, test: str, method: str, eps: float, delta: float) -> Row:
    formal = audit.assurance is not Assurance.HEURISTIC
    bound = Bound(eps, method, 1 - audit.alpha if formal else None, 1)
    claimed = audit.claimed_eps is not None and delta == 0
    said, against, note = one.verdict.value, False, ""
    if not formal:
        said += " (heuristic)"
        note = "how users were assigned is unknown: nothing here is proved, and nothing decides about a claim"
    elif audit.claim_contradicted is not None:
        against = audit.claim_contradicted
        said += f"; {(Verdict.CONTRADICTED if against else Verdict.CONSISTENT).value} (all classes together)"
        note = "" if claimed else "the claim that was told is for δ = 0"
    return Row(
        study=audit.name,
        kind=Kind.SYNTHETIC,
        mechanism=f"{audit.synthetic_records:,} records, assignment {audit.assignment}",
        attacker="the synthetic output",
        attack=f"{one.name}, {test}",
        canary=f"{audit.train + audit.holdout:,} {audit.unit}s, train against held out",
        setting=Setting(audit.unit.value, audit.adjacency, delta),
        claim=Promise(audit.claimed_eps, None) if claimed and audit.claimed_eps is not None else None,
        exact=None,
        formal=bound if formal else None,
        heuristic=None if formal else bound,
        verdict=said,
        contradicted=against,
        note=note,
    )
