"""What a disclosure audit says to an experiment tracker: one run for the audit, a child for each class."""

from __future__ import annotations

from coalmine.auditor.disclosure.report.rows import Row, rows
from coalmine.auditor.disclosure.result import ClassAudit, DisclosureAudit
from coalmine.auditor.runs import Run


def runs(audit: DisclosureAudit, round: int = 1) -> tuple[Run, ...]:
    """The audit's run, then its classes, in order. ``round``: step of every metric, from 1."""
    found = rows(audit)
    bounds = [eps for row in found for eps in (row.eps_feature, row.eps_user) if eps is not None]
    whole = Run(
        audit.name,
        round,
        _params(audit),
        {"disclosure/eps_lower": max(bounds)} if bounds else {},
        {"kind": "disclosures", "verdict": audit.verdict.value, **_tags(audit)}
        | {f"fact/{key}": value for key, value in audit.facts.items()},
    )
    return (whole, *(_class(audit, one, row, round) for one, row in zip(audit.classes, found, strict=True)))


def _class(audit: DisclosureAudit, one: ClassAudit, row: Row, round: int) -> Run:
    numbers = {
        "disclosure/total": row.total,
        "disclosure/train": row.train,
        "disclosure/p_value": row.p_value,
        "disclosure/p_holm": row.p_holm,
        "disclosure/p_hat": row.p_hat,
        "eps/lower/feature-match": row.eps_feature,
        "eps/lower/user-match": row.eps_user,
        "disclosure/auc": row.auc,
    }
    return Run(
        one.name,
        round,
        {"class": one.name, "counted": row.counted, "declared": ", ".join(test.name for test in one.declared)},
        {name: float(value) for name, value in numbers.items() if value is not None},
        {
            "kind": "disclosure class",
            "verdict": one.verdict.value,
            "reasons": " ".join(one.reasons),
            "notes": " ".join(one.notes),
            **_tags(audit),
        },
    )


def _params(audit: DisclosureAudit) -> dict[str, str]:
    return {
        "users.train": str(audit.train),
        "users.holdout": str(audit.holdout),
        "records.private": str(audit.private_records),
        "records.synthetic": str(audit.synthetic_records),
        "assignment": audit.assignment.value,
        "p": f"{audit.p:g}",
        "alpha": f"{audit.alpha:g}",
        "classes": ", ".join(one.name for one in audit.classes),
    }


def _tags(audit: DisclosureAudit) -> dict[str, str]:
    return {
        "adjacency": audit.adjacency.value,
        "unit": audit.unit.value,
        "threat_model": "the synthetic output",
        "delta": f"{audit.delta:g}",
        "assurance": audit.assurance.value,
        "verdict/correction": f"Holm over all declared tests at alpha = {audit.alpha:g}",
    }
