"""`coalmine calc`: the statistics on their own."""

from __future__ import annotations

from typing import Annotated

import typer

from coalmine.deploy.commands.output import AsJson, answer

app = typer.Typer(no_args_is_help=True, help="Calculators: claims, bounds and one-run audits on their own.")

Delta = Annotated[float, typer.Option(help="Failure probability of the (eps, delta) statement.")]


@app.command()
def claim(
    q: Annotated[float, typer.Option(help="Poisson participation rate in (0, 1].")],
    sigma: Annotated[float, typer.Option(help="Noise multiplier, > 0.")],
    rounds: Annotated[int, typer.Option(help="Releases.", min=1, max=1_000_000)] = 1,
    delta: Delta = 1e-5,
    as_json: AsJson = False,
) -> None:
    """Promised epsilon of repeated releases: Opacus' PRV value and dp-accounting's PLD bracket (user, add/remove)."""
    from coalmine.protocol.accounting import pld_epsilon, prv_epsilon
    from coalmine.protocol.privacy import Mechanism

    Mechanism(q=q, sigma=sigma, delta=delta)
    lower, upper = pld_epsilon(q, sigma, rounds, delta)
    answer({"prv": prv_epsilon(q, sigma, rounds, delta), "pld": {"lower": lower, "upper": upper}}, as_json)


@app.command("eps-lower")
def eps_lower(
    tp: Annotated[int, typer.Option(help="Answers 'present' with the canary eligible.")],
    fp: Annotated[int, typer.Option(help="Answers 'present' without the canary.")],
    n1: Annotated[int, typer.Option(help="Trials with the canary eligible.", min=1, max=10**15)],
    n0: Annotated[int, typer.Option(help="Trials without the canary.", min=1, max=10**15)],
    delta: Delta = 1e-5,
    alpha: Annotated[float, typer.Option(help="Failure probability of the whole statement.")] = 0.05,
    split: Annotated[str, typer.Option(help="four (the paper's) or two bounds share alpha.")] = "four",
    as_json: AsJson = False,
) -> None:
    """Clopper-Pearson lower bound on epsilon from error counts at one threshold that was fixed beforehand (formal)."""
    from coalmine.auditor.eps_bound import Split
    from coalmine.auditor.eps_bound import eps_lower as bound
    from coalmine.protocol.errors import StudyError, nearest

    if split not in tuple(Split):
        raise StudyError(f"unknown split {split!r}", where="--split", remedy=nearest(split, tuple(Split)))
    found = bound(tp, fp, n1, n0, delta, alpha, Split(split))
    answer({"eps_lower": found.eps_lower}, as_json)


@app.command("clopper-pearson")
def clopper_pearson(
    x: Annotated[int, typer.Option(help="Successes.", min=0, max=10**15)],
    n: Annotated[int, typer.Option(help="Trials.", min=1, max=10**15)],
    gamma: Annotated[float, typer.Option(help="Failure probability of each one-sided bound.")],
    as_json: AsJson = False,
) -> None:
    """One-sided Clopper-Pearson bounds on a probability."""
    from coalmine.auditor import clopper_pearson as bounds

    answer({"lower": float(bounds.lower(x, n, gamma)), "upper": float(bounds.upper(x, n, gamma))}, as_json)


@app.command()
def gdp(
    mu: Annotated[float, typer.Option(help="Gaussian differential privacy parameter, >= 0.")],
    delta: Delta = 1e-5,
    as_json: AsJson = False,
) -> None:
    """Epsilon of mu-GDP at delta."""
    from coalmine.auditor.gdp import eps

    answer({"eps": eps(mu, delta)}, as_json)


@app.command("one-run")
def one_run(
    canaries: Annotated[int, typer.Option(help="Canaries, each included with probability 1/2.", min=1, max=10**7)],
    guesses: Annotated[int, typer.Option(help="Guesses made.")],
    correct: Annotated[int, typer.Option(help="Guesses that were right.")],
    delta: Delta = 1e-5,
    level: Annotated[float, typer.Option(help="Significance level.")] = 0.05,
    as_json: AsJson = False,
) -> None:
    """One-run audits: Steinke et al. 2023 (formal) and the GDP reading of Mahloujifar et al. 2024 (heuristic)."""
    from coalmine.auditor.gdp import eps
    from coalmine.auditor.one_run import Guesses, gdp_mu_lower, steinke_eps_lower

    seen = Guesses(canaries, guesses, correct)
    mu = gdp_mu_lower(seen, level)
    answer(
        {"steinke": {"eps": steinke_eps_lower(seen, delta, level)}, "fdp": {"mu": mu, "eps": eps(mu, delta)}}, as_json
    )
