"""From scores of shadow models to findings, repeated over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from coalmine.auditor.membership.conventions import all_conventions
from coalmine.protocol.errors import StudyError
from coalmine.protocol.finding import Evidence, Finding, Verdict
from coalmine.protocol.privacy import Assurance, Claim


def finding(subject: str, claim: Claim, evidence: Sequence[Evidence]) -> Finding:
    """Contradicted where a formal or exact bound lies above the claim; heuristics never decide."""
    against = [
        one for one in evidence if one.assurance is not Assurance.HEURISTIC and one.eps_lower > claim.eps_pld_upper
    ]
    return Finding(subject, claim, tuple(evidence), Verdict.CONTRADICTED if against else Verdict.CONSISTENT)


def audit(
    subject: str,
    claim: Claim,
    present: ArrayLike,
    absent: ArrayLike,
    alpha: float,
    rng: np.random.Generator,
    *,
    group_size: int = 1,
) -> Finding:
    """One canary (or group) under one threshold test, in all conventions.

    Args:
        group_size: k > 1 where presence means k samples at once. The bounds are then on the epsilon of groups of k, and
            no statement about one sample follows from dividing them; the claim's own group epsilon is not computed, so
            the verdict is withheld from contradiction.

    Raises:
        StudyError: as :func:`all_conventions`.
    """
    evidence = all_conventions(present, absent, claim.delta, alpha, rng)
    if group_size == 1:
        return finding(subject, claim, evidence)
    of_group = tuple(
        Evidence(
            f"{one.method} (group of {group_size})",
            one.assurance,
            one.eps_lower,
            one.confidence,
            one.error,
            {**one.details, "group_size": float(group_size)},
        )
        for one in evidence
    )
    return Finding(subject, claim, of_group, Verdict.CONSISTENT)


@dataclass(frozen=True)
class Repeated:
    """One convention over repetitions of the whole experiment: every value, their mean and spread.

    Attributes:
        std: sample standard deviation; 0 with one repetition.
    """

    method: str
    assurance: Assurance
    values: tuple[float, ...]
    mean: float
    std: float


def repeated(findings: Sequence[Finding]) -> tuple[Repeated, ...]:
    """Repetitions of one subject, convention by convention.

    Raises:
        StudyError: nothing to summarise, or different subjects or conventions.
    """
    shapes = {(one.subject, tuple(evidence.method for evidence in one.evidence)) for one in findings}
    if len(shapes) != 1:
        raise StudyError(
            f"{len(shapes)} kinds of findings", where="repetitions", remedy="needs repetitions of one audit"
        )
    rows = np.array([[evidence.eps_lower for evidence in one.evidence] for one in findings])
    spread = rows.std(axis=0, ddof=1) if len(rows) > 1 else np.zeros(rows.shape[1])
    return tuple(
        Repeated(one.method, one.assurance, tuple(map(float, column)), float(column.mean()), float(std))
        for one, column, std in zip(findings[0].evidence, rows.T, spread, strict=True)
    )
