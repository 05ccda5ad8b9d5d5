"""Rows of DP-SGD: audits by shadow models, and runs that nobody has attacked."""

from __future__ import annotations

from collections.abc import Mapping

from coalmine.auditor.joined.row import NOT_MEASURED, Kind, Promise, Row, Setting, largest, named
from coalmine.auditor.membership.report.views import holds_against, view
from coalmine.auditor.membership.result import Arm, MembershipAudit, Subject, Trained
from coalmine.protocol.finding import Verdict
from coalmine.protocol.privacy import Assurance, Claim

_FILTERED = "with filter"


def membership_rows(audit: MembershipAudit, values: Mapping[str, object] | None = None) -> tuple[Row, ...]:
    """One row for each canary of each arm; all repetitions together.

    Args:
        values: of the swept keys, where the audit is a point of a sweep.
    """
    study = named(audit.study, values or {})
    return tuple(_subject(study, audit, arm, one) for arm in audit.arms for one in arm.subjects)


def trained_rows(found: Trained) -> tuple[Row, ...]:
    """One row: a claim that was not tested."""
    kind = Kind.FILTERED if found.largest_drop else Kind.DP_SGD
    return (
        Row(
            study=found.study,
            kind=kind,
            mechanism=_parameters(found.claim),
            attacker=NOT_MEASURED,
            attack="not attacked",
            canary="no canary",
            setting=_setting(found.claim),
            claim=Promise(found.claim.eps_pld_upper, found.claim.assurance),
            exact=None,
            formal=None,
            heuristic=None,
            verdict="not audited",
            contradicted=False,
        ),
    )


def _subject(study: str, audit: MembershipAudit, arm: Arm, subject: Subject) -> Row:
    evidence = [one for finding in subject.findings for one in finding.evidence]
    group = max((int(one.details.get("group_size", 0)) for one in evidence), default=0)
    claim, against = audit.claim, subject.verdict is Verdict.CONTRADICTED
    setting = _setting(claim)
    return Row(
        study=study,
        kind=Kind.FILTERED if arm.name == _FILTERED else Kind.DP_SGD,
        mechanism=_parameters(claim),
        attacker=view(subject.name).value,
        attack=subject.name,
        canary=_trials(audit, subject),
        setting=Setting(f"group of {group} {setting.unit}s", setting.adjacency, setting.delta) if group else setting,
        claim=None if group else Promise(claim.eps_pld_upper, claim.assurance),
        exact=largest(evidence, Assurance.EXACT),
        formal=largest(evidence, Assurance.FORMAL),
        heuristic=largest(evidence, Assurance.HEURISTIC),
        verdict="none" if group else subject.verdict.value,
        contradicted=against,
        note=f"the claim is about one {setting.unit}, and none follows for a group" if group else "",
    )


def _trials(audit: MembershipAudit, subject: Subject) -> str:
    repeated = f", {audit.repetitions} repetitions" if audit.repetitions > 1 else ""
    if any(one.method.startswith("one_run/") for finding in subject.findings for one in finding.evidence):
        return f"one model{repeated}"
    return f"{audit.models} models a side{repeated}"


def _setting(claim: Claim) -> Setting:
    return Setting(claim.unit.value, claim.adjacency, claim.delta)


def _parameters(claim: Claim) -> str:
    return f"{claim.rounds} steps, q = {claim.q:g}, σ = {claim.sigma:g}; {holds_against(claim)}"
