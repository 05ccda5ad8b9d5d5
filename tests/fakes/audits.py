"""A ``RoundAudit`` with the shape and size of a real one, made without clients, encoder or bank.

Every canary is a subsampled Gaussian without background, so that its exact epsilon has a closed form; Monte-Carlo
counts are the expected ones. Norms are chosen so that the epsilons resemble those measured on real text.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from coalmine.auditor import clopper_pearson
from coalmine.auditor.attacks import ATTACKS, PoolKind
from coalmine.auditor.eps_bound import eps_lower, eps_lower_scan
from coalmine.auditor.ideal import ideal_epsilon
from coalmine.auditor.result import (
    AttackAudit,
    CanaryAudit,
    PoolAccount,
    ProbeVotes,
    Replay,
    RoundAudit,
    TradeOff,
)
from coalmine.auditor.waterfall import Step, Waterfall
from coalmine.protocol.finding import Evidence, Finding, Verdict
from coalmine.protocol.pool import Tally
from coalmine.protocol.privacy import Adjacency, Assurance, Claim, Mechanism, PrivacyUnit, ThreatModel

MECHANISM = Mechanism()
CLAIM = Claim(
    eps_prv=1.69477,
    eps_pld_lower=1.68449,
    eps_pld_upper=1.68454,
    delta=MECHANISM.delta,
    q=MECHANISM.q,
    sigma=MECHANISM.sigma,
    rounds=1,
    adjacency=Adjacency.ADD_REMOVE,
    unit=PrivacyUnit.USER,
    threat_model=ThreatModel.RELEASE_ONLY,
)
SEPARATIONS = {
    "ordinary": (0.52, 0.71, 0.66, 0.58, 0.61),
    "exact": (0.34, 0.48, 0.44, 0.40, 0.50),
    "paraphrase": (0.30, 0.42, 0.38, 0.35, 0.41),
    "paraphrase-norm": (0.36, 0.47, 0.45, 0.39, 0.46),
    "paraphrase-mu": (0.47, 0.62, 0.58, 0.51, 0.59),
    "nonce": (0.978, 0.981, 0.979, 0.982, 0.980),
    "nonce-norm": (0.991, 0.992, 0.990, 0.993, 0.991),
    "nonce-mu": (0.992, 0.993, 0.991, 0.994, 0.992),
}
"""mu_eff of each attack's five canaries."""


@dataclass(frozen=True)
class _Test:
    """The score's two laws in units of the noise: N(0, 1), and N(mu, 1) with probability q."""

    mu: float

    def fpr(self, threshold: np.ndarray) -> np.ndarray:
        return ndtr(-threshold)

    def tpr(self, threshold: np.ndarray) -> np.ndarray:
        q = MECHANISM.q
        return (1 - q) * ndtr(-threshold) + q * ndtr(self.mu - threshold)


def round_audit(
    attacks: tuple[str, ...] = tuple(ATTACKS),
    *,
    canaries: int = 5,
    trials: int = 1_000_000,
    verdict: Verdict = Verdict.CONSISTENT,
    randomness: str = "simulated",
    replayed: bool = True,
) -> RoundAudit:
    """A published-size round: N=1000, q=0.1, sigma=1, p=8192, r=64."""
    return RoundAudit(
        study="ubuntu-irc",
        mechanism=MECHANISM,
        claim=CLAIM,
        eligible=1000,
        expected_cohort=100.0,
        bank_size=8192,
        probes=64,
        randomness=randomness,
        alpha=0.05,
        trials=trials,
        bank=PoolAccount(
            "bank", 8192, "smollm2 135M Q4_1 sha256:9c41d0aa", Tally(8613, blank=9, repeated=371, refused=41), None, {}
        ),
        bank_digest="5f0e9a3b" * 8,
        dataset_digest="c0ffee12" * 8,
        attacks=tuple(_attack(name, canaries, trials, verdict, replayed) for name in attacks),
        replay_p_value=0.41 if replayed else None,
        facts={
            "data": "ubuntu_irc.parquet, 1,000 test users with at least 16 messages",
            "encoder": "MiniLM-L6 fp32 sha256:53aa5117",
            "seed digest": "sha256:0b51c1d2e8f7",
            "coalmine": "0.1.0",
            "numpy": "2.4.1",
        },
        seconds={"embedding": 41.2, "probes": 9.3, "replay": 55.0, "exact": 2.1, "monte-carlo": 38.4, "report": 3.0},
    )


def _attack(name: str, canaries: int, trials: int, verdict: Verdict, replayed: bool) -> AttackAudit:
    audits = tuple(
        _canary(name, index + 1, mu, canaries, trials, replayed)
        for index, mu in enumerate(SEPARATIONS[name][:canaries])
    )
    best = tuple(max(group, key=lambda e: e.eps_lower) for group in zip(*(a.evidence for a in audits), strict=True))
    return AttackAudit(Finding(name, CLAIM, best, verdict), audits, _pools(name, canaries))


def _pools(name: str, canaries: int) -> tuple[PoolAccount, ...]:
    match ATTACKS[name].pool:
        case PoolKind.PARAPHRASES:
            quantiles = {"0%": 0.602, "25%": 0.741, "50%": 0.813, "75%": 0.877, "100%": 0.989}
            return tuple(
                PoolAccount(
                    f"paraphrases of canary {index + 1}",
                    512,
                    "smollm2 135M Q4_1 sha256:9c41d0aa",
                    Tally(790 + 13 * index, blank=2, repeated=61 + index, refused=5, unfaithful=210 + 12 * index),
                    0.6,
                    quantiles,
                )
                for index in range(canaries)
            )
        case PoolKind.NONCES:
            return (PoolAccount("nonces", 512, "random strings", Tally(512), None, {}),)
        case _:
            return ()


def _canary(name: str, canary: int, mu: float, canaries: int, trials: int, replayed: bool) -> CanaryAudit:
    test = _Test(mu)
    delta, q = MECHANISM.delta, MECHANISM.q
    alpha = 0.05 / canaries
    exact = ideal_epsilon(mu, q, delta)
    thresholds = np.linspace(0.5, 4.5, 161)
    tp, fp = (np.rint(trials * rates(thresholds)).astype(int) for rates in (test.tpr, test.fpr))
    chosen = int(np.argmax(eps_lower_scan(tp, fp, trials, trials, delta, alpha)))
    certified = eps_lower(int(tp[chosen]), int(fp[chosen]), trials, trials, delta, alpha).eps_lower
    threshold = float(thresholds[chosen])
    whole_norm = MECHANISM.clip * min(1.0, mu + 0.25 if name != "ordinary" else mu + 0.05)
    reached = MECHANISM.clip * min(1.0, mu + 0.02)
    support = ideal_epsilon(min(1.0, whole_norm / MECHANISM.clip - 0.01), q, delta)
    details = {"threshold": threshold, "tp": float(tp[chosen]), "fp": float(fp[chosen])}
    evidence = {
        "monte_carlo": Evidence(
            "monte-carlo/clopper-pearson/four", Assurance.FORMAL, certified, confidence=1 - alpha, details=details
        ),
        "variance_reduced": Evidence(
            "variance-reduced/betting", Assurance.FORMAL, certified + 0.55 * (exact - certified), confidence=1 - alpha
        ),
        "exact": Evidence("exact", Assurance.EXACT, exact, error=8e-8),
    }
    elsewhere = {} if name == "ordinary" else {"support": Evidence("exact", Assurance.EXACT, support, error=8e-8)}
    ceiling, clipped, hit = (
        ideal_epsilon(norm / MECHANISM.clip, q, delta) for norm in (MECHANISM.clip, whole_norm, reached)
    )
    told = (
        ("ceiling", ceiling, "A vote of full length C that nobody else disturbs."),
        ("clipping slack", clipped, "The canary's clipped vote may be shorter than C."),
        ("votes that miss the coordinates", hit, "Part of the vote falls on coordinates that are not audited."),
        ("other users' traffic", exact + 2e-4, "Other users vote on the audited coordinates too."),
        ("estimated design", exact, "The score is designed on auxiliary users instead."),
    )
    steps = [Step(step, eps, why, Assurance.EXACT, 8e-8) for step, eps, why in told]
    last = Step("finite trials", certified, "What finitely many trials certify with confidence.", Assurance.FORMAL)
    waterfall = Waterfall((*steps, last))
    return CanaryAudit(
        attack=name,
        canary=canary,
        coordinates="probes",
        size=64,
        vote_norm=whole_norm,
        audited_norm=reached,
        mu_eff=mu,
        tpr=float(test.tpr(np.array(threshold))),
        fpr=float(test.fpr(np.array(threshold))),
        **evidence,
        exact_elsewhere=elsewhere,
        waterfall=waterfall,
        trade_off=_trade_off(test, threshold, trials),
        probe_votes=_probe_votes(name, canary, reached),
        replay=Replay(400, 0.37, 0.52 + 0.05 * canary, 0.0) if replayed and canary == 1 else None,
    )


def _trade_off(test: _Test, threshold: float, trials: int) -> TradeOff:
    fpr = np.geomspace(1e-7, 1.0, 200)
    tpr = test.tpr(-ndtri(fpr))
    sampled = np.array([3e-5, 1e-4, 1e-3, 1e-2, 1e-1, 0.5])
    hits = np.rint(trials * test.tpr(-ndtri(sampled))).astype(int)
    return TradeOff(
        fpr=tuple(map(float, fpr)),
        tpr=tuple(map(float, tpr)),
        sampled_fpr=tuple(map(float, sampled)),
        sampled_tpr=tuple(float(x) / trials for x in hits),
        tpr_low=tuple(float(x) for x in clopper_pearson.lower(hits, trials, 0.025)),
        tpr_high=tuple(float(x) for x in clopper_pearson.upper(hits, trials, 0.025)),
        confidence=0.95,
        chosen=(float(test.fpr(np.array(threshold))), float(test.tpr(np.array(threshold)))),
    )


def _probe_votes(name: str, canary: int, norm: float) -> ProbeVotes:
    rng = np.random.default_rng([canary, *name.encode()])
    weights = np.sort(rng.gamma(1.5 if "nonce" not in name else 6.0, size=64))[::-1]
    traffic = rng.lognormal(-4.4 if "nonce" not in name else -7.5, 0.9, size=64)
    return ProbeVotes(
        canary=tuple(map(float, norm * weights / np.linalg.norm(weights))),
        background_mean=tuple(map(float, traffic)),
        background_std=tuple(map(float, np.sqrt(traffic * 0.012))),
        noise_std=MECHANISM.noise_std,
    )
