"""What an audit reports: claim + evidence + verdict. A number about privacy cannot be built without its qualifiers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from coalmine.protocol.privacy import Assurance, Claim


class Verdict(StrEnum):
    """What the evidence says about the claim. Absence of evidence is never called proof of privacy."""

    CONTRADICTED = "claim contradicted"
    CONSISTENT = "no contradiction found"


@dataclass(frozen=True)
class Evidence:
    """One epsilon an attacker could show.

    Attributes:
        method: e.g. "monte-carlo/clopper-pearson/four", "exact".
        assurance: formal, exact or heuristic.
        eps_lower: >= 0.
        confidence: 1 - alpha of the statement, ``None`` where nothing was sampled.
        error: certified numerical error of ``eps_lower`` (exact evidence), else ``None``.
        details: counts, rates, thresholds: numbers that may be published.
    """

    method: str
    assurance: Assurance
    eps_lower: float
    confidence: float | None = None
    error: float | None = None
    details: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """One audited subject (an attack, a mechanism): the claim, the evidence against it, the verdict."""

    subject: str
    claim: Claim
    evidence: tuple[Evidence, ...]
    verdict: Verdict
