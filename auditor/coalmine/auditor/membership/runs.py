"""What training and its audit say to an experiment tracker."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

from coalmine.auditor.membership.result import Arm, Audited, MembershipAudit, Subject, Trained
from coalmine.auditor.runs import Run, stage_metrics
from coalmine.protocol.privacy import Claim


def trained_runs(found: Trained) -> tuple[Run, ...]:
    """One run; the step of its metrics is the number of noised steps."""
    metrics = {**_claimed(found.claim), "utility/accuracy": found.accuracy}
    metrics |= {"utility/accuracy/before": found.accuracy_before}
    metrics |= stage_metrics(found.seconds)
    params = {"mode": found.mode, "clients": str(found.clients), "rounds": str(found.rounds), **_knobs(found.claim)}
    tags = {"kind": "training", "trust": found.trust, **_tags(found.claim)}
    return (_run(found.study, found.claim.rounds, params, metrics, tags | _facts(found.facts)),)


def audit_runs(found: MembershipAudit) -> tuple[Run, ...]:
    """The audit, then every canary of every arm."""
    metrics = {**_claimed(found.claim), "utility/accuracy/before": found.accuracy_before}
    metrics |= {f"utility/accuracy/{arm.name}": arm.accuracy for arm in found.arms}
    metrics |= {f"filter/lost/{share.of}": share.mean for arm in found.arms for share in arm.dropped}
    metrics |= {f"tpr/{rate.fpr:g}/{one.defence}": rate.tpr for one in found.label_only for rate in one.rates}
    metrics |= {f"utility/accuracy/label only/{one.defence}": one.accuracy for one in found.label_only}
    for one in found.disparate:
        of = "" if one.minority is None else f"/minority {one.minority:g}"
        for name, shares in (
            ("filter/lost", one.impact.dropped),
            ("utility/accuracy/with filter", one.impact.accuracy),
            ("utility/accuracy/without filter", one.impact.accuracy_unfiltered),
        ):
            metrics |= {f"{name}/{share.of}{of}": share.mean for share in shares}
    params = {
        "audit.models": str(found.models),
        "audit.alpha": f"{found.alpha:g}",
        "audit.repetitions": str(found.repetitions),
        **_knobs(found.claim),
    }
    tags = {
        "kind": "membership",
        "verdict": found.verdict.value,
        **_beside(found),
        "notes": " ".join(found.notes),
        **_tags(found.claim),
    }
    step = found.claim.rounds
    whole = _run(found.study, step, params, metrics, tags | _facts(found.facts))
    return (whole, *(_subject(found, arm, subject) for arm in found.arms for subject in arm.subjects))


def audited_runs(found: Audited) -> tuple[Run, ...]:
    """A single audit, or the sweep with a child for every point and below each its canaries."""
    if not found.keys:
        return audit_runs(found.points[0][1])
    tags = {"kind": "sweep", "keys": ", ".join(found.keys)}
    runs = [Run(found.study, found.points[0][1].claim.rounds, {"points": str(len(found.points))}, {}, tags)]
    for values, audit in found.points:
        place, (whole, *canaries) = len(runs), audit_runs(audit)
        params = whole.params | {f"sweep.{key}": str(value) for key, value in values.items()}
        named = ", ".join(f"{key}={value}" for key, value in values.items())
        runs += [replace(whole, name=named, params=params), *(replace(one, parent=place) for one in canaries)]
    return tuple(runs)


def audited_records(found: Audited) -> list[dict[str, Any]]:
    """A row of each bound, with the values of the swept keys."""
    return [{**values, **row} for values, audit in found.points for row in audit_records(audit)]


def audit_records(found: MembershipAudit) -> list[dict[str, Any]]:
    """A row of each bound of each repetition."""
    return [
        {
            "arm": arm.name,
            "canary": subject.name,
            "repetition": number,
            "method": one.method,
            "assurance": one.assurance.value,
            "confidence": one.confidence,
            "eps_lower": one.eps_lower if math.isfinite(one.eps_lower) else None,
            "eps_claimed": found.claim.eps_pld_upper if math.isfinite(found.claim.eps_pld_upper) else None,
            "adjacency": found.claim.adjacency.value,
            "unit": found.claim.unit.value,
        }
        for arm in found.arms
        for subject in arm.subjects
        for number, finding in enumerate(subject.findings)
        for one in finding.evidence
    ]


def _subject(found: MembershipAudit, arm: Arm, subject: Subject) -> Run:
    metrics = {f"eps/lower/{one.method}": one.mean for one in subject.repeated}
    tight = [
        one.details["tightness"] for found in subject.findings for one in found.evidence if "tightness" in one.details
    ]
    if tight:
        metrics["tightness"] = sum(tight) / len(tight)
    if subject.dropped_in is not None:
        metrics["filter/dropped"] = subject.dropped_in
    tags = {f"assurance/{one.method}": one.assurance.value for one in subject.repeated}
    tags |= {"kind": "canary", "verdict": subject.verdict.value, **_tags(found.claim)}
    params = {"arm": arm.name, "canary": subject.name}
    return _run(f"{subject.name}, {arm.name}", found.claim.rounds, params, _claimed(found.claim) | metrics, tags)


def _beside(found: MembershipAudit) -> dict[str, str]:
    """How much the numbers prove that stand beside the canaries'."""
    told = {"assurance/tpr": found.label_only[0].assurance.value} if found.label_only else {}
    return told | ({"assurance/disparate": found.disparate[0].assurance.value} if found.disparate else {})


def _claimed(claim: Claim) -> dict[str, float]:
    return {"eps/theory": claim.eps_pld_upper, "eps/theory_prv": claim.eps_prv}


def _knobs(claim: Claim) -> dict[str, str]:
    return {"privacy.q": f"{claim.q:g}", "privacy.sigma": f"{claim.sigma:g}", "privacy.steps": str(claim.rounds)}


def _tags(claim: Claim) -> dict[str, str]:
    return {
        "adjacency": claim.adjacency.value,
        "unit": claim.unit.value,
        "threat_model": claim.threat_model.value,
        "delta": f"{claim.delta:g}",
        "assurance": claim.assurance.value,
    }


def _facts(facts: dict[str, str]) -> dict[str, str]:
    return {f"fact/{key}": value for key, value in facts.items()}


def _run(name: str, step: int, params: dict[str, str], metrics: dict[str, float], tags: dict[str, str]) -> Run:
    odd = {f"not_finite/{key}": str(value) for key, value in metrics.items() if not math.isfinite(value)}
    kept = {_key(key): value for key, value in metrics.items() if math.isfinite(value)}
    return Run(name, step, params, kept, {_key(key): value for key, value in (tags | odd).items()})


def _key(words: str) -> str:
    """Fit for a name in MLflow: letters, digits, and few signs."""
    return re.sub(r"[^\w\-. :/]", "", words.replace("+", " "))
