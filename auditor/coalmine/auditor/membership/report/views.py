"""Whose view a number is about: the claim's attacker may see more than the attack that was run."""

from __future__ import annotations

from enum import StrEnum

from coalmine.auditor.membership.result import MembershipAudit
from coalmine.auditor.report.wording import brief
from coalmine.protocol.privacy import Claim

GRADIENT_CANARY = "gradient canary, every update"
"""The subject of the white-box attack; records carry this name."""


class View(StrEnum):
    """What an attack on a training run reads."""

    FINAL_MODEL = "the final model"
    PARAMETER = "one parameter of the final model"
    EVERY_UPDATE = "every noised update"
    LABELS = "predicted labels alone"


def view(subject: str) -> View:
    """Of the attack on a subject, by the name that the audit gave it."""
    if subject == GRADIENT_CANARY:
        return View.EVERY_UPDATE
    return View.PARAMETER if subject.startswith("group of") else View.FINAL_MODEL


def holds_against(claim: Claim) -> str:
    """The claim's attacker, named as the claim's."""
    return f"claim holds against: {claim.threat_model}"


def attacks_see(audit: MembershipAudit) -> str:
    """The views of all attacks that were run, each once; empty where none was."""
    views = {view(one.name) for arm in audit.arms for one in arm.subjects}
    if audit.label_only:
        views.add(View.LABELS)
    told = [one.value for one in View if one in views]
    if not told:
        return ""
    return f"the attack sees: {told[0]}" if len(told) == 1 else f"the attacks see, each its own: {'; '.join(told)}"


def claimed(claim: Claim) -> str:
    """Everything without which the claim's epsilon means nothing, in one line."""
    return f"δ = {brief(claim.delta)} · neighbours: {claim.adjacency} · unit: {claim.unit} · {holds_against(claim)}"


def qualifiers(audit: MembershipAudit) -> str:
    """The claim's, and what the attacks see."""
    return " · ".join(filter(None, (claimed(audit.claim), attacks_see(audit))))
