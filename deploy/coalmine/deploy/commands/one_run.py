"""`coalmine audit one-run` and `coalmine calc one-run-plan`: many canaries in one run."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coalmine.deploy.commands.output import AsJson, answer

if TYPE_CHECKING:
    from coalmine.auditor.one_run_pe import OneRunAudit


def one_run(
    study: Annotated[Path, typer.Argument(help="Study file with a section audit.one_run.")],
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="Override a key, e.g. audit.one_run.canaries=99; may be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """One run, many nonce canaries, each included on its own coin (user level, add/remove, participation included).

    Steinke et al. 2023 (formal), the claim's own trade-off curve after Mahloujifar et al. 2024 (formal), and its GDP
    reading (heuristic); each holds at its own level, audit.alpha. Writes one-run.json into the study's folder.
    """
    import json

    from rich.console import Console

    from coalmine.auditor.report.write import write_text
    from coalmine.deploy.one_run import one_run_section
    from coalmine.deploy.prepare import people
    from coalmine.deploy.progress import Stages
    from coalmine.deploy.studio import writable
    from coalmine.deploy.study_file import read_study
    from coalmine.deploy.workshop import open_workshop

    chosen = read_study(study, overrides or ())
    one_run_section(chosen)
    folder = writable(chosen.folder)
    stages = Stages(Console(stderr=True))
    with stages, redirect_stdout(sys.stderr):
        with stages.stage("data"):
            crowd = people(chosen)
        with open_workshop(chosen, stages) as workshop:
            from coalmine.deploy.one_run import run_one_run

            found = record(run_one_run(chosen, crowd, workshop))
    write_text(folder / "one-run.json", json.dumps(found, indent=2, allow_nan=False) + "\n")
    answer(found, as_json)


def one_run_plan(
    target: Annotated[float, typer.Option(help="Epsilon that the bound shall reach.")],
    q: Annotated[float, typer.Option(help="Poisson participation rate in (0, 1].")] = 0.1,
    sigma: Annotated[float, typer.Option(help="Noise multiplier, > 0.")] = 1.0,
    releases: Annotated[int, typer.Option(help="Releases on one bank.", min=1, max=1000)] = 1,
    delta: Annotated[float, typer.Option(help="Failure probability of the (eps, delta) statement.")] = 1e-5,
    level: Annotated[float, typer.Option(help="Significance level of the bound.")] = 0.05,
    probes_each: Annotated[int, typer.Option(help="Probes of each canary.", min=1)] = 5,
    votes_per_record: Annotated[int, typer.Option(help="k, votes of a record.", min=1)] = 5,
    power: Annotated[float, typer.Option(help="Probability of reaching the target.")] = 0.8,
    limit: Annotated[int, typer.Option(help="Most canaries.", min=8, max=1_000_000)] = 100_000,
    as_json: AsJson = False,
) -> None:
    """Canaries, probes and guesses for a target bound (Steinke, formal). The plan itself is an estimate.

    It is made for the best case: canaries at the clip, alone with their probes.
    """
    from dataclasses import asdict

    from coalmine.auditor.one_run_plan import plan
    from coalmine.protocol.privacy import Mechanism
    from coalmine.protocol.randomness import Purpose, stream

    mechanism = Mechanism(q=q, sigma=sigma, delta=delta, votes_per_record=votes_per_record)
    rng = stream(0, Purpose.MONTE_CARLO, user="one-run plan")
    found = plan(mechanism, releases, target, level, rng, probes_each=probes_each, power=power, limit=limit)
    answer(asdict(found), as_json)


def record(found: OneRunAudit) -> dict[str, Any]:
    """What may be published: the claim and every statement with its qualifiers."""
    seen, claim = found.guesses, found.claim
    return {
        "claim": {
            "eps": claim.eps_pld_upper,
            "delta": claim.delta,
            "q": claim.q,
            "sigma": claim.sigma,
            "releases": claim.rounds,
            "adjacency": str(claim.adjacency),
            "unit": str(claim.unit),
            "threat_model": str(claim.threat_model),
        },
        "canaries": seen.canaries,
        "guesses": {"in": found.say_in, "out": found.say_out, "correct": seen.correct},
        "level": found.level,
        "steinke": {
            "eps": found.steinke.eps_lower,
            "assurance": str(found.steinke.assurance),
            "claim_p_value": found.claim_p_value,
            "claim_rejected": found.claim_p_value < found.level,
        },
        "claim_curve": {
            "rejected": found.curve_rejected,
            "sigma_rejected": found.sigma_rejected,
            "assurance": "formal",
            "eps_of_family": found.family_eps,
            "eps_of_family_assurance": "heuristic",
        },
        "gdp": {"eps": found.gdp.eps_lower, "assurance": str(found.gdp.assurance)},
    }
