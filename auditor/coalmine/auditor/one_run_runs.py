"""What a one-run audit says to an experiment tracker."""

from __future__ import annotations

from dataclasses import asdict

from coalmine.auditor.one_run_audit import OneRunStudy
from coalmine.auditor.runs import Run, run_of, stage_metrics


def one_run_runs(found: OneRunStudy) -> tuple[Run, ...]:
    """One run; the step of its metrics is the number of releases."""
    audit, claim = found.audit, found.audit.claim
    metrics = {
        "eps/theory": claim.eps_pld_upper,
        "eps/theory_prv": claim.eps_prv,
        "cohort/expected": (found.eligible + audit.guesses.canaries / 2) * found.mechanism.q,
        "one-run/guesses": audit.guesses.guesses,
        "one-run/correct": audit.guesses.correct,
        "one-run/p_value": audit.claim_p_value,
        **{f"eps/lower/{one.method}": one.eps_lower for one in audit.evidence},
        **stage_metrics(found.seconds),
    }
    if audit.sigma_rejected is not None:
        metrics["one-run/sigma_rejected"] = audit.sigma_rejected
    params = {
        **{f"privacy.{key}": value for key, value in asdict(found.mechanism).items()},
        "population.eligible": found.eligible,
        "bank.size": found.bank_size,
        "audit.alpha": audit.level,
        "audit.one_run.canaries": audit.guesses.canaries,
        "audit.one_run.probes_each": found.probes_each,
        "audit.one_run.records": found.records,
        "audit.one_run.guesses": f"{audit.say_in} in, {audit.say_out} out",
        "audit.one_run.releases": claim.rounds,
        "randomness": found.randomness,
    }
    tags = {
        "verdict": audit.verdict.value,
        "verdict/correction": f"none: every statement stands for itself at alpha = {audit.level:g}",
        "curve_rejected": str(audit.curve_rejected).lower(),
        "participation": "included in the claim",
        "bank_digest": found.bank_digest,
        "dataset_digest": found.dataset_digest,
        "adjacency": claim.adjacency.value,
        "unit": claim.unit.value,
        "threat_model": claim.threat_model.value,
        "delta": f"{claim.delta:g}",
        **{f"fact/{key}": value for key, value in found.facts.items()},
    }
    for one in audit.evidence:
        tags |= {f"assurance/{one.method}": one.assurance.value, f"confidence/{one.method}": f"{1 - audit.level:.6g}"}
    return (run_of(found.study, "one-run", claim.rounds, params, metrics, tags),)
