"""Several audited rounds of one study, all attacks together."""

from __future__ import annotations

from dataclasses import dataclass, field

from coalmine.auditor.rounds.result import PathAudit, PrefixAudit
from coalmine.auditor.utility.result import RoundUtility
from coalmine.protocol.finding import Evidence, Verdict
from coalmine.protocol.privacy import Assurance, Claim, Mechanism


@dataclass(frozen=True)
class RoundsAudit:
    """Everything that T rounds show. Conditional on the banks that came out.

    Attributes:
        study: its name. claims: after 1, ..., T rounds.
        eligible: N. bank_digests: of the banks without probes, round by round.
        alpha: family-wise over one attack's canaries, for each prefix by itself. trials: per hypothesis.
        paths: by attack, one audit for each canary.
        replicas: by attack and prefix, what adaptive replicas of the first canary prove, or empty. Not conditional.
        utility: of the synthetic output of each round, or empty.
    """

    study: str
    mechanism: Mechanism
    claims: tuple[Claim, ...]
    eligible: int
    randomness: str
    bank_digests: tuple[str, ...]
    dataset_digest: str
    alpha: float
    trials: int
    paths: dict[str, tuple[PathAudit, ...]]
    replicas: dict[str, tuple[Evidence, ...]] = field(default_factory=dict)
    utility: tuple[RoundUtility, ...] = ()


def strongest(paths: tuple[PathAudit, ...], rounds: int) -> PrefixAudit:
    """The canary with the largest exact epsilon after so many rounds."""
    return max((path.prefixes[rounds - 1] for path in paths), key=lambda prefix: prefix.exact.eps_lower)


def largest(paths: tuple[PathAudit, ...], rounds: int, estimator: str) -> float:
    """The largest value of an estimator ("exact", "monte_carlo", "variance_reduced") over the canaries."""
    return float(max(getattr(path.prefixes[rounds - 1], estimator).eps_lower for path in paths))


def contradicted(audit: RoundsAudit) -> list[tuple[str, int]]:
    """(attack, rounds) wherever evidence that proves something exceeds the claim."""
    return [
        (attack, claim.rounds)
        for attack, paths in audit.paths.items()
        for claim in audit.claims
        if any(
            evidence.assurance is not Assurance.HEURISTIC and evidence.eps_lower > claim.eps_pld_upper
            for evidence in (
                *(one for path in paths for one in path.prefixes[claim.rounds - 1].evidence),
                *audit.replicas.get(attack, ())[claim.rounds - 1 : claim.rounds],
            )
        )
    ]


def verdict(audit: RoundsAudit) -> Verdict:
    """Of all prefixes together."""
    return Verdict.CONTRADICTED if contradicted(audit) else Verdict.CONSISTENT
