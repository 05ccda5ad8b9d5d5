"""The sentences that table, report and tracking share. They say what the numbers show and stop there."""

from __future__ import annotations

import math
from collections.abc import Sequence

from coalmine.auditor.attacks import CanaryKind
from coalmine.auditor.report.summary import best, most_counted, most_integrated, rows
from coalmine.auditor.result import RoundAudit
from coalmine.protocol.finding import Verdict
from coalmine.protocol.privacy import Adjacency, Claim, ThreatModel

_ATTACKERS = {
    ThreatModel.RELEASE_ONLY: "the attacker sees the noisy release and the public bank; the aggregator is trusted",
    ThreatModel.EVERY_UPDATE: (
        "the attacker sees every noised update and every model; who sums and adds the noise is trusted"
    ),
    ThreatModel.COHORT: (
        "the attacker sees the noisy release, the public bank, who took part, and which rounds were aborted. Nobody"
        " is trusted to add noise, so a round with too few survivors is aborted, and that is itself a disclosure. The"
        " claim covers what a user holds and not that it takes part; drawing participation earns nothing (q counts as"
        " 1), and participants must not pool what they know of the noise"
    ),
}
_PROMISES = {
    Adjacency.ADD_REMOVE: "Whether or not one user, with everything it holds, is eligible",
    Adjacency.REPLACE_ONE: "Which of two users, with everything it holds, is eligible",
    Adjacency.ZERO_OUT: "Whether one user, who takes part either way, holds what it holds or nothing",
}

CAVEAT = (
    "That no attack here shows more does not prove that none could: it is absence of evidence, for these attacks, "
    "these canaries and this bank."
)

ROUNDED = "Exact ε and lower bounds are rounded down, so that none is overstated; claims are rounded to the nearest."

LARGEST = (
    "MC and VR are the largest over an attack's canaries; the waterfall follows the one canary with the largest exact "
    "ε, so its last step may be smaller than MC."
)

ELSEWHERE = {
    "support": "support: the same release scored on the probes and on all other candidates that the canary votes for.",
    "probes": "probes: the same release scored on the probes alone.",
}


def brief(value: float, digits: int = 3) -> str:
    """Few significant digits: 1e-5, 0.0123, 12,346."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if not 0 < abs(value) < 1e-3:
        return f"{value:.{digits}g}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def fixed(value: float, digits: int = 3) -> str:
    """Rounded to the nearest."""
    return f"{value:.{digits}f}" if math.isfinite(value) else "∞" if value > 0 else str(value)


def down(value: float, digits: int = 3) -> str:
    """Rounded down, so that a lower bound stays one. A value within 1e-9 of the next digit counts as reaching it."""
    unit = 10**digits
    if not math.isfinite(value * unit):
        return fixed(value, digits)
    return fixed(math.floor(value * unit + 1e-9 * unit) / unit, digits)


def percent(share: float) -> str:
    """Whole percent; a little less or more than all is not shown as all."""
    text = f"{share:.0%}"
    if text != "100%" or share == 1:
        return text
    return f"{(math.floor if share < 1 else math.ceil)(1000 * share) / 10:.1f}%"


def qualifiers(claim: Claim) -> str:
    """Everything without which an epsilon means nothing, in one line."""
    return (
        f"δ = {brief(claim.delta)} · neighbours: {claim.adjacency} · unit: {claim.unit} · "
        f"attacker sees: {claim.threat_model}"
    )


def attacker(claim: Claim) -> str:
    """What the claim's attacker sees, and what the claim does not cover.

    Raises:
        KeyError: a threat model without wording.
    """
    return f"{claim.threat_model}: {_ATTACKERS[claim.threat_model]}"


def promise(claim: Claim) -> str:
    """What the claim says, in a sentence.

    Raises:
        KeyError: an adjacency without wording.
    """
    return _PROMISES[claim.adjacency]


def releases(claim: Claim) -> str:
    return "one release" if claim.rounds == 1 else f"{claim.rounds} releases"


def verdict(audit: RoundAudit) -> Verdict:
    """Contradicted as soon as one attack's finding is; each attack stands for itself at level ``alpha``."""
    contradicted = any(attack.finding.verdict is Verdict.CONTRADICTED for attack in audit.attacks)
    return Verdict.CONTRADICTED if contradicted else Verdict.CONSISTENT


def answer(audit: RoundAudit) -> tuple[str, ...]:
    """What was found, in a few plain sentences, every figure in them from the audit."""
    found, claim = rows(audit), audit.claim.eps_pld_upper
    strongest, counted, integrated = best(found), most_counted(found), most_integrated(found)
    if strongest is None or counted is None or integrated is None:
        return ("No attack was run.",)
    natural = best(found, CanaryKind.REAL)
    compared = (
        f"; the strongest against a real user, {natural.attack}, reaches {down(natural.exact.eps_lower)}, "
        f"{percent(natural.share)}"
        if natural is not None and natural is not strongest
        else ""
    )
    promise = (
        f"The accounting promises an epsilon of at most {claim:.4f} for {releases(audit.claim)} "
        f"(δ = {brief(audit.claim.delta)}). The strongest of {_count(len(found))}, {strongest.attack}, reaches an "
        f"exact epsilon of {down(strongest.exact.eps_lower)}, {percent(strongest.share)} of the promise{compared}."
    )
    certified = (
        f"From {audit.trials:,} simulated trials per hypothesis alone one could certify, with "
        f"{percent(1 - audit.alpha)} confidence for each attack by itself, at least "
        f"{down(counted.monte_carlo.eps_lower)} by counting ({counted.attack}), and at least "
        f"{down(integrated.variance_reduced.eps_lower)} when the noise is integrated instead of drawn "
        f"({integrated.attack})."
    )
    return promise, certified, *weakness(strongest.share), _conclusion(audit)


def weakness(share: float) -> tuple[str, ...]:
    """What has to be said of an audit whose strongest attack shows less than half of the claim; else nothing.

    Args:
        share: the largest exact epsilon over the claim, >= 0.
    """
    if share >= 0.5:
        return ()
    return (
        f"This audit was weak: its strongest attack reaches {percent(share)} of the promise, less than half. Few "
        "probes, a small bank or canaries that share their candidates with other users can be the reason. It is not "
        "good news about the mechanism: a stronger attack may show much more.",
    )


def _conclusion(audit: RoundAudit) -> str:
    against = [a.name for a in audit.attacks if a.finding.verdict is Verdict.CONTRADICTED]
    if not against:
        return f"Verdict: {Verdict.CONSISTENT}. {CAVEAT}"
    correction = (
        f" Each attack has its own error budget of {brief(audit.alpha)}; nothing corrects for the number of attacks."
        if len(audit.attacks) > 1
        else ""
    )
    return f"Verdict: {Verdict.CONTRADICTED} by {_listed(against)}.{correction}"


def randomness(audit: RoundAudit) -> str:
    """What the source of randomness means for whoever holds the release."""
    if audit.randomness == "simulated":
        return (
            "simulated: every random number follows from the study's seed, so whoever knows the seed can recompute the "
            "noise and take it off. Such a release protects nobody, whatever its epsilon; it is there to be studied."
        )
    if audit.randomness == "protected":
        return (
            "protected: participation was drawn from a secret key and the noise from the operating system's entropy. "
            "The round cannot be reproduced."
        )
    return audit.randomness


def how_to_read(audit: RoundAudit) -> tuple[str, ...]:
    """A few lines below the table."""
    level = f"{percent(1 - audit.alpha)}"
    return (
        "exact: epsilon of the attack's score on its strongest canary, computed for the modelled mechanism.",
        f"MC ≥: what {audit.trials:,} trials a side certify by counting ({level} per attack over all its canaries).",
        "VR ≥: the same confidence with the noise integrated instead of drawn; either may be the larger one.",
        LARGEST,
        ROUNDED,
        f"of claim: exact / {audit.claim.eps_pld_upper:.4f}. μ_eff: distance of the score's two means, in noise units, "
        f"if the canary takes part; {brief(1 / audit.mechanism.sigma)} is a whole vote that nobody disturbs.",
        "Epsilons below the claim are no proof of it: other attacks may show more.",
    )


def _count(attacks: int) -> str:
    return "one attack" if attacks == 1 else f"{attacks} attacks"


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else words[0]
