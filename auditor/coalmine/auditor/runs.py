"""What an audited round says to an experiment tracker: one run for the study, one for the round, one per attack.

Pure data: nothing here knows MLflow. Left out on purpose: seed (its digest is a fact), realised cohorts, votes, texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace

from coalmine.auditor.report.summary import Row, best, rows
from coalmine.auditor.report.wording import verdict
from coalmine.auditor.result import RoundAudit
from coalmine.auditor.rounds.study import RoundsAudit, largest
from coalmine.auditor.rounds.study import verdict as rounds_verdict
from coalmine.auditor.sweep import Sweep
from coalmine.auditor.utility.result import utility_metrics
from coalmine.protocol.finding import Evidence, Verdict
from coalmine.protocol.privacy import Claim

_LONGEST_PARAM = 6000
"""Characters that MLflow stores of a parameter."""
_LONGEST_TAG = 5000


@dataclass(frozen=True)
class Run:
    """One run, its values already fit for storage.

    Attributes:
        step: the round, from 1; of every metric.
        parent: index of the parent among the runs that are logged together; ``None``: the first of them.
        series: further metrics, each with a step of its own.
        metrics: finite numbers. What is infinite or undefined stands in ``tags`` as ``not_finite/<metric>``.
    """

    name: str
    step: int
    params: dict[str, str]
    metrics: dict[str, float]
    tags: dict[str, str]
    parent: int | None = None
    series: tuple[tuple[int, dict[str, float]], ...] = ()


def runs(audit: RoundAudit, round: int = 1) -> tuple[Run, ...]:
    """The study's run, then its children: the round and every attack, in order."""
    params, metrics, tags = _params(audit), _round_metrics(audit), _study_tags(audit)
    return (
        run_of(audit.study, "study", round, params, metrics | stage_metrics(audit.seconds), tags),
        run_of(f"round {round}", "round", round, params, metrics, tags),
        *(_attack(audit, row, round) for row in rows(audit)),
    )


def rounds_runs(audit: RoundAudit, over: RoundsAudit) -> tuple[Run, ...]:
    """The study's run, then its children: every round, and every attack with a value after each round.

    Args:
        audit: of the first round. over: of all of them.
    """
    study, _, *attacks = runs(audit)
    last = over.claims[-1].rounds
    params = {**study.params, "rounds": str(last)}
    verdicts = {"verdict": rounds_verdict(over).value, "conditional": "on the banks that came out"}
    tags = {**_study_tags(audit), **verdicts}
    best = [(claim.rounds, _prefix_metrics(over, tuple(over.paths), claim)) for claim in over.claims]
    each = [
        run_of(f"round {step}", "round", step, params, metrics, tags | {"bank_digest": over.bank_digests[step - 1]})
        for step, metrics in best
    ]
    seconds = {key: value for key, value in study.metrics.items() if key.startswith("seconds/")}
    return (
        replace(study, metrics=seconds, params=params, tags=study.tags | verdicts, series=tuple(best)),
        *each,
        *(
            replace(
                run,
                metrics={},
                tags=run.tags | {"conditional": verdicts["conditional"]} | _replicas_tags(over, run.name),
                series=tuple((claim.rounds, _prefix_metrics(over, (run.name,), claim)) for claim in over.claims),
            )
            for run in attacks
        ),
    )


def _replicas_tags(over: RoundsAudit, attack: str) -> dict[str, str]:
    """What replicas prove holds without the condition on the banks."""
    if attack not in over.replicas:
        return {}
    last = over.replicas[attack][-1]
    return {**dict(_evidence_tags("replicas", last)), "conditional/replicas": "on nothing: banks of their own"}


def _prefix_metrics(over: RoundsAudit, attacks: tuple[str, ...], claim: Claim) -> dict[str, float]:
    """The largest values after so many rounds, over attacks and canaries; what is not finite is left out."""
    found = {
        name: max(largest(over.paths[attack], claim.rounds, estimator) for attack in attacks)
        for name, estimator in (
            ("eps/exact", "exact"),
            ("eps/lower/monte-carlo", "monte_carlo"),
            ("eps/lower/variance-reduced", "variance_reduced"),
        )
    }
    metrics = {
        "eps/theory": claim.eps_pld_upper,
        "eps/theory_prv": claim.eps_prv,
        "tightness": found["eps/exact"] / claim.eps_pld_upper,
        **found,
    }
    adaptive = [over.replicas[attack][claim.rounds - 1].eps_lower for attack in attacks if attack in over.replicas]
    if adaptive:
        metrics["eps/lower/replicas"] = max(adaptive)
    if over.utility:
        metrics |= utility_metrics(over.utility[claim.rounds - 1])
    return {key: value for key, value in metrics.items() if math.isfinite(value)}


def sweep_runs(sweep: Sweep) -> tuple[Run, ...]:
    """The sweep's run, a child for every point, and below each point its attacks."""
    first = sweep.points[0].audit
    tags = {"keys": ", ".join(sweep.keys), "dataset_digest": first.dataset_digest}
    found = [run_of(sweep.name, "sweep", 1, {"points": len(sweep.points)}, {}, tags)]
    for point in sweep.points:
        audit = point.audit
        named = ", ".join(f"{key}={value}" for key, value in point.values.items())
        place = len(found)
        params = {**_params(audit), **{f"sweep.{key}": value for key, value in point.values.items()}}
        found.append(run_of(named, "point", 1, params, _round_metrics(audit), _study_tags(audit)))
        found += [replace(_attack(audit, row, 1), parent=place) for row in rows(audit)]
    return tuple(found)


def run_of(
    name: str, kind: str, step: int, params: Mapping[str, object], metrics: Mapping[str, float], tags: Mapping[str, str]
) -> Run:
    """A run whose values are fit for storage; a metric that is not finite becomes a tag."""
    odd = {f"not_finite/{key}": str(value) for key, value in metrics.items() if not math.isfinite(value)}
    return Run(
        name,
        step,
        {_key(key): _cut(str(value), _LONGEST_PARAM) for key, value in params.items()},
        {_key(key): float(value) for key, value in metrics.items() if math.isfinite(value)},
        {_key(key): _cut(value, _LONGEST_TAG) for key, value in {"kind": kind, **tags, **odd}.items()},
    )


def _params(audit: RoundAudit) -> dict[str, object]:
    return {
        **{f"privacy.{key}": value for key, value in asdict(audit.mechanism).items()},
        "population.eligible": audit.eligible,
        "bank.size": audit.bank_size,
        "bank.generator": audit.bank.generator_id,
        "audit.probes": audit.probes,
        "audit.alpha": audit.alpha,
        "audit.trials": audit.trials,
        "audit.attacks": ", ".join(attack.name for attack in audit.attacks),
        "randomness": audit.randomness,
    }


def _claim_metrics(audit: RoundAudit) -> dict[str, float]:
    return {"eps/theory": audit.claim.eps_pld_upper, "eps/theory_prv": audit.claim.eps_prv}


def _round_metrics(audit: RoundAudit) -> dict[str, float]:
    """The largest of every attack's values, so that studies can be compared at their parent runs."""
    found = rows(audit)
    strongest = best(found)
    metrics = _claim_metrics(audit) | {"cohort/expected": audit.expected_cohort}
    if audit.replay_p_value is not None:
        metrics["replay/p_value"] = audit.replay_p_value
    if strongest is None:
        return metrics
    return metrics | {
        **_row_metrics(strongest),
        "eps/lower/monte-carlo": max(row.monte_carlo.eps_lower for row in found),
        "eps/lower/variance-reduced": max(row.variance_reduced.eps_lower for row in found),
    }


def _row_metrics(row: Row) -> dict[str, float]:
    return {
        "eps/exact": row.exact.eps_lower,
        "eps/lower/monte-carlo": row.monte_carlo.eps_lower,
        "eps/lower/variance-reduced": row.variance_reduced.eps_lower,
        "tightness": row.share,
        "mu_eff": row.strongest.mu_eff,
        "tpr": row.strongest.tpr,
        "fpr": row.strongest.fpr,
    }


def stage_metrics(seconds: Mapping[str, float]) -> dict[str, float]:
    """Wall-clock time by stage: "embed users' records" is ``seconds/embed-users-records``."""
    slug = {stage: re.sub(r"[^a-z0-9]+", "-", stage.replace("'", "").lower()).strip("-") for stage in seconds}
    return {f"seconds/{slug[stage]}": value for stage, value in seconds.items()}


def _attack(audit: RoundAudit, row: Row, round: int) -> Run:
    elsewhere = {} if row.elsewhere is None else {f"eps/exact/{row.elsewhere[0]}": row.elsewhere[1]}
    params = {
        "attack": row.attack,
        "canary.kind": row.kind,
        "canaries": len(next(attack for attack in audit.attacks if attack.name == row.attack).canaries),
        "coordinates": row.strongest.coordinates,
        "coordinates.size": row.strongest.size,
    }
    tags = _common_tags(audit) | {"verdict": row.verdict.value, "idea": row.idea}
    for name in ("exact", "monte_carlo", "variance_reduced"):
        tags |= dict(_evidence_tags(name.replace("_", "-"), getattr(row, name)))
    return run_of(row.attack, "attack", round, params, _claim_metrics(audit) | _row_metrics(row) | elsewhere, tags)


def _evidence_tags(name: str, evidence: Evidence) -> Iterator[tuple[str, str]]:
    yield f"assurance/{name}", evidence.assurance.value
    yield f"method/{name}", evidence.method
    if evidence.confidence is not None:
        yield f"confidence_per_canary/{name}", f"{evidence.confidence:.6g}"


def _study_tags(audit: RoundAudit) -> dict[str, str]:
    against = [attack.name for attack in audit.attacks if attack.finding.verdict is Verdict.CONTRADICTED]
    listed = {"verdict/contradicted_by": ", ".join(against)} if against else {}
    return {
        **_common_tags(audit),
        **{f"fact/{key}": value for key, value in audit.facts.items()},
        "verdict": verdict(audit).value,
        "verdict/correction": f"none: every attack stands for itself at alpha = {audit.alpha:g}",
        **listed,
    }


def _common_tags(audit: RoundAudit) -> dict[str, str]:
    return {
        "bank_digest": audit.bank_digest,
        "dataset_digest": audit.dataset_digest,
        "adjacency": audit.claim.adjacency.value,
        "unit": audit.claim.unit.value,
        "threat_model": audit.claim.threat_model.value,
        "delta": f"{audit.claim.delta:g}",
    }


def _key(name: str) -> str:
    """MLflow allows letters, digits, ``_ - . : /`` and blanks, at most 250 characters."""
    return re.sub(r"[^\w\-./: ]", "_", name, flags=re.ASCII)[:250]


def _cut(text: str, longest: int) -> str:
    """A text that is too long says so itself, instead of being cut where nobody sees it."""
    mark = f" ... ({len(text)} characters)"
    return text if len(text) <= longest else text[: longest - len(mark)] + mark
