"""What an audit of several rounds found. Everything here may be published, as in the single round's ``result``."""

from __future__ import annotations

from dataclasses import dataclass

from coalmine.auditor.result import Replay, TradeOff
from coalmine.auditor.waterfall import Waterfall
from coalmine.protocol.finding import Evidence
from coalmine.protocol.privacy import Claim


@dataclass(frozen=True)
class PrefixAudit:
    """One attack on one canary after some rounds. All of it is *conditional on the banks* that came out.

    Attributes:
        rounds: how many, 1 to T.
        threshold: on the summed ``ell_mix``, from calibration users; ``None`` where the canary cast no vote so far.
        tpr, fpr: observed rates of the Monte-Carlo trials at the threshold.
        monte_carlo, variance_reduced, exact: the evidence on the audited coordinates. A sampled one holds at its level
            for this prefix alone; for all prefixes at once its alpha has to be shared among them.
        exact_elsewhere: the exact epsilon on other sets of coordinates, by name.
        replay: real rounds against the modelled law of the sum, or ``None``.
    """

    rounds: int
    threshold: float | None
    tpr: float
    fpr: float
    monte_carlo: Evidence
    variance_reduced: Evidence
    exact: Evidence
    exact_elsewhere: dict[str, Evidence]
    waterfall: Waterfall
    trade_off: TradeOff
    replay: Replay | None = None

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        return (self.monte_carlo, self.variance_reduced, self.exact)

    def tightness(self, claim: Claim) -> float:
        """The exact epsilon as a share of Opacus' epsilon, the paper's eps_theory; not a number where that is none.

        Args:
            claim: for this number of rounds.
        """
        return self.exact.eps_lower / claim.eps_prv


@dataclass(frozen=True)
class PathAudit:
    """One attack on one canary along one path of banks.

    Attributes:
        attack: name in ``ATTACKS``. canary: 1, 2, ...; user names are not reported.
        coordinates: "probes" or "support". sizes: per round, how many.
        vote_norms: per round, L2 norm of the canary's clipped vote; audited_norms: of its part on the coordinates.
        mu_eff: per round, separation of the score's two hypotheses if the canary took part.
        prefixes: after 1, ..., T rounds.
    """

    attack: str
    canary: int
    coordinates: str
    sizes: tuple[int, ...]
    vote_norms: tuple[float, ...]
    audited_norms: tuple[float, ...]
    mu_eff: tuple[float, ...]
    prefixes: tuple[PrefixAudit, ...]
