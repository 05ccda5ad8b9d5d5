"""`coalmine audit one-run` and `coalmine calc one-run-plan`: many canaries in one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coalmine.deploy.commands.output import AsJson, answer


def one_run(
    study: Annotated[Path, typer.Argument(help="Study file with a section audit.one_run.")],
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="Override a key, e.g. audit.one_run.canaries=99; may be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """One run, many nonce canaries, each included on its own coin (user level, add/remove, participation included).

    Steinke et al. 2023 (formal), the claim's own trade-off curve after Mahloujifar et al. 2024 (formal), its GDP
    reading and the Gaussian one of Agrawal et al. 2026 (both heuristic); each holds at its own level, audit.alpha.
    Writes a page, figures and one-run.json into the folder one-run of the study, and a run into MLflow.
    """
    from coalmine.deploy.one_run import one_run_section
    from coalmine.deploy.one_run_studio import conduct_one_run
    from coalmine.deploy.study_file import read_study

    chosen = read_study(study, overrides or ())
    one_run_section(chosen)
    conduct_one_run(chosen, as_json)


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
    from coalmine.auditor.report.wording import brief, percent
    from coalmine.protocol.privacy import Mechanism
    from coalmine.protocol.randomness import Purpose, stream

    mechanism = Mechanism(q=q, sigma=sigma, delta=delta, votes_per_record=votes_per_record)
    rng = stream(0, Purpose.MONTE_CARLO, user="one-run plan")
    found = plan(mechanism, releases, target, level, rng, probes_each=probes_each, power=power, limit=limit)
    answer(
        asdict(found),
        as_json,
        f"an estimate for the best case; eps: Steinke's lower bound, {percent(1 - level)} confidence,"
        f" δ = {brief(delta)} · neighbours: add/remove · unit: user · formal",
    )
