"""What the guesses of a one-run audit say about the claim, formal statements first, heuristic readings after them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.one_run import (
    Guesses,
    gdp_eps_lower,
    inverse_blow_up,
    rejects_curve,
    steinke_eps_lower,
    steinke_p_value,
)
from coalmine.auditor.one_run_gaussian import gaussian_reading
from coalmine.protocol.accounting import pld_deltas, pld_epsilon
from coalmine.protocol.finding import Evidence, Verdict
from coalmine.protocol.privacy import Assurance, Claim, Mechanism

Array = NDArray[np.float64]

_CURVE_EPSILONS = np.concatenate([np.linspace(0.0, 12.0, 300), np.geomspace(12.1, 100.0, 60)])
"""Each gives two lines below the trade-off curve; how many only says how close they come to it."""
_CURVE_CELL = 1e-3
"""Of the privacy loss: ten times the accounting's own and ten times as fast; deltas are a little larger, never smaller
(by less than 1e-6 for six rounds at q = 0.1)."""
_SIGMA_REACH = 4.0
_SIGMA_PRECISION = 0.01


@dataclass(frozen=True)
class OneRunAudit:
    """What one run shows. Each statement holds at its own level; together they would need a share of it each.

    Attributes:
        claim: of all releases, participation q included: an included canary takes part with probability q only.
        steinke: formal lower bound on epsilon at the claim's delta.
        claim_p_value: of Steinke's test of the claim (eps_pld_upper, delta), formal.
        curve_rejected: the claim's own trade-off curve is rejected, formal.
        sigma_rejected: every noise multiplier from here on is rejected at this q and number of releases (formal);
            ``None`` where none is, up to four times the claimed one.
        family: epsilon of a subsampled Gaussian with that multiplier, 0 without one; heuristic for any other mechanism.
        gdp: the largest rejected mu-GDP curve read as epsilon, heuristic (subsampling is not GDP).
        gaussian: both groups of scores read as Gaussians, heuristic.
        inside, outside: the scores that it reads, ascending, so that no canary can be told by its place.
    """

    claim: Claim
    guesses: Guesses
    say_in: int
    say_out: int
    level: float
    steinke: Evidence
    claim_p_value: float
    curve_rejected: bool
    sigma_rejected: float | None
    family: Evidence
    gdp: Evidence
    gaussian: Evidence
    inside: tuple[float, ...]
    outside: tuple[float, ...]

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        return (self.steinke, self.family, self.gdp, self.gaussian)

    @property
    def verdict(self) -> Verdict:
        """Of the two formal tests of the claim, each at its own level."""
        rejected = self.curve_rejected or self.claim_p_value < self.level
        return Verdict.CONTRADICTED if rejected else Verdict.CONSISTENT


@dataclass(frozen=True)
class OneRunStudy:
    """The one-run audit of a study. Everything in it may be published.

    Attributes:
        study: its name. eligible: N, ordinary users. bank_size: p.
        records, probes_each: of each canary.
        randomness: "simulated" or "protected". facts: as in ``RoundAudit``. seconds: wall-clock seconds by stage.
    """

    study: str
    mechanism: Mechanism
    eligible: int
    bank_size: int
    records: int
    probes_each: int
    randomness: str
    bank_digest: str
    dataset_digest: str
    audit: OneRunAudit
    facts: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


def audit(
    seen: Guesses, say_in: int, say_out: int, claim: Claim, level: float, inside: Array, outside: Array
) -> OneRunAudit:
    """Hold the guesses against the claim.

    Args:
        seen: made as ``guess`` does, ``say_in`` and ``say_out`` fixed beforehand. level: of each statement.
        inside, outside: ``linear_scores`` of the canaries that were included, and of the others.

    Raises:
        StudyError: a value out of its range.
    """
    counts = {"canaries": float(seen.canaries), "guesses": float(seen.guesses), "correct": float(seen.correct)}
    sigma = smallest_rejected_sigma(seen, claim.q, claim.sigma, claim.rounds, level)
    family = 0.0 if sigma is None else pld_epsilon(claim.q, sigma, claim.rounds, claim.delta)[0]

    def counted(method: str, assurance: Assurance, eps: float) -> Evidence:
        return Evidence(f"one-run/{method}", assurance, eps, 1 - level, None, counts)

    return OneRunAudit(
        claim=claim,
        guesses=seen,
        say_in=say_in,
        say_out=say_out,
        level=level,
        steinke=counted("steinke", Assurance.FORMAL, steinke_eps_lower(seen, claim.delta, level)),
        claim_p_value=steinke_p_value(seen, claim.eps_pld_upper, claim.delta),
        curve_rejected=rejects_curve(seen, claim_curve(claim.q, claim.sigma, claim.rounds), level),
        sigma_rejected=sigma,
        family=counted("claim-family", Assurance.HEURISTIC, family),
        gdp=counted("gdp", Assurance.HEURISTIC, gdp_eps_lower(seen, claim.delta, level)),
        gaussian=gaussian_reading(inside, outside, claim.delta, level),
        inside=tuple(np.sort(inside).tolist()),
        outside=tuple(np.sort(outside).tolist()),
    )


def claim_curve(q: float, sigma: float, rounds: int) -> Callable[[float], float]:
    """A lower estimate of the inverse blow-up of ``rounds`` subsampled Gaussians, from the pessimistic PLD."""
    deltas = pld_deltas(q, sigma, rounds, _CURVE_EPSILONS, cell=_CURVE_CELL)
    return inverse_blow_up(_CURVE_EPSILONS, np.clip(deltas, 0.0, 1.0))


def smallest_rejected_sigma(seen: Guesses, q: float, claimed: float, rounds: int, level: float) -> float | None:
    """The noise multiplier from which on the subsampled Gaussian's curve is rejected, rounded up by at most 1 %.

    More noise means a curve that allows fewer right guesses, so what is rejected stays rejected above. Looked for from
    a quarter of the claimed one to four times it.

    Returns:
        ``None`` where four times the claimed one is not rejected.
    """

    def rejected(sigma: float) -> bool:
        return rejects_curve(seen, claim_curve(q, sigma, rounds), level)

    low, high = claimed / _SIGMA_REACH, claimed * _SIGMA_REACH
    if not rejected(high):
        return None
    while high / low > 1 + _SIGMA_PRECISION:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if rejected(middle) else (middle, high)
    return high
