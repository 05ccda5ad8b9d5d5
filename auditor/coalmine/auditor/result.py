"""What an audit of one round found. Everything here may be published: no private text, vote, cohort or user name."""

from __future__ import annotations

from dataclasses import dataclass, field

from coalmine.auditor.waterfall import Waterfall
from coalmine.protocol.finding import Evidence, Finding
from coalmine.protocol.pool import Tally
from coalmine.protocol.privacy import Claim, Mechanism


@dataclass(frozen=True)
class TradeOff:
    """Power of the attack's score: exact curve and Monte-Carlo points with pointwise Clopper-Pearson bands.

    Attributes:
        fpr, tpr: exact rates on a grid of thresholds, FPR ascending.
        sampled_fpr, sampled_tpr: observed rates at a few thresholds.
        tpr_low, tpr_high: band at each of those thresholds; ``confidence`` holds for each point alone.
        chosen: (fpr, tpr) exact, at the calibrated threshold.
    """

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]
    sampled_fpr: tuple[float, ...]
    sampled_tpr: tuple[float, ...]
    tpr_low: tuple[float, ...]
    tpr_high: tuple[float, ...]
    confidence: float
    chosen: tuple[float, float]


@dataclass(frozen=True)
class ProbeVotes:
    """What lies on the audited coordinates, sorted by the canary's vote, largest first.

    Attributes:
        canary: the canary's clipped vote. background_mean, background_std: of the other users' sum, estimated from
            public auxiliary users. noise_std: sigma * C.
    """

    canary: tuple[float, ...]
    background_mean: tuple[float, ...]
    background_std: tuple[float, ...]
    noise_std: float


@dataclass(frozen=True)
class Replay:
    """Scores of real rounds (shards, aggregator, noise) against the modelled distribution: Kolmogorov-Smirnov p-values.

    Attributes:
        trials: rounds per hypothesis. p_absent, p_eligible: p-values without and with the canary eligible.
        eps_lower: the Clopper-Pearson bound that these few rounds alone can certify.
    """

    trials: int
    p_absent: float
    p_eligible: float
    eps_lower: float


@dataclass(frozen=True)
class CanaryAudit:
    """One attack on one canary.

    Attributes:
        attack: name in ``ATTACKS``. canary: 1, 2, ...; user names are not reported.
        coordinates: "probes" or "support" (probes and the canary's own support). size: how many.
        vote_norm: L2 norm of the canary's clipped vote; audited_norm: the part on the audited coordinates.
        mu_eff: separation of the score's two hypotheses in standard deviations if the canary took part.
        monte_carlo, variance_reduced, exact: the evidence on ``coordinates``.
        exact_elsewhere: the exact epsilon on the other set of coordinates, by its name.
    """

    attack: str
    canary: int
    coordinates: str
    size: int
    vote_norm: float
    audited_norm: float
    mu_eff: float
    tpr: float
    fpr: float
    monte_carlo: Evidence
    variance_reduced: Evidence
    exact: Evidence
    exact_elsewhere: dict[str, Evidence]
    waterfall: Waterfall
    trade_off: TradeOff
    probe_votes: ProbeVotes
    replay: Replay | None = None

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        return (self.monte_carlo, self.variance_reduced, self.exact)


@dataclass(frozen=True)
class AttackAudit:
    """One attack on all its canaries. The attack's value is the largest over its canaries, each at alpha / canaries.

    Attributes:
        finding: claim, best evidence of each method, verdict.
        canaries: all of them, in order.
        pools: for attacks with generated probes the account of each canary's pool, else empty.
    """

    finding: Finding
    canaries: tuple[CanaryAudit, ...]
    pools: tuple[PoolAccount, ...] = ()

    @property
    def name(self) -> str:
        return self.finding.subject

    @property
    def strongest(self) -> CanaryAudit:
        """The canary with the largest exact epsilon."""
        return max(self.canaries, key=lambda audit: audit.exact.eps_lower)


@dataclass(frozen=True)
class PoolAccount:
    """How a set of generated texts came about.

    Attributes:
        what: "bank" or "paraphrases of canary 1". size: distinct texts kept.
        min_cosine: the stated bound on faithfulness, ``None`` where there is no source text.
        cosine_quantiles: of the kept texts to their sources.
    """

    what: str
    size: int
    generator_id: str
    tally: Tally
    min_cosine: float | None
    cosine_quantiles: dict[str, float]


@dataclass(frozen=True)
class RoundAudit:
    """Everything one audited round shows.

    Attributes:
        study: its name. mechanism, claim: what was promised.
        eligible: N, public. expected_cohort: q * N. bank_size: p. probes: r.
        randomness: "simulated" or "protected".
        alpha: family-wise level per attack. trials: Monte-Carlo trials per hypothesis.
        replay_p_value: the smallest Kolmogorov-Smirnov p-value over all replays, Bonferroni-corrected (which is Holm's
            first step); ``None`` without replays.
        facts: further public facts for the reader (data source, encoder, generator, digests, versions, seed digest).
        seconds: wall-clock seconds by stage.
    """

    study: str
    mechanism: Mechanism
    claim: Claim
    eligible: int
    expected_cohort: float
    bank_size: int
    probes: int
    randomness: str
    alpha: float
    trials: int
    bank: PoolAccount
    bank_digest: str
    dataset_digest: str
    attacks: tuple[AttackAudit, ...]
    replay_p_value: float | None
    facts: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
