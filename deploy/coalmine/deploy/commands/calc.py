"""`coalmine calc`: the statistics on their own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coalmine.deploy.commands import one_run as many_canaries
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
    from coalmine.auditor.report.wording import brief
    from coalmine.protocol.accounting import pld_epsilon, prv_epsilon
    from coalmine.protocol.privacy import Mechanism

    Mechanism(q=q, sigma=sigma, delta=delta)
    lower, upper = pld_epsilon(q, sigma, rounds, delta)
    answer(
        {"prv": prv_epsilon(q, sigma, rounds, delta), "pld": {"lower": lower, "upper": upper}},
        as_json,
        f"promised ε at δ = {brief(delta)} · neighbours: add/remove · unit: user · exact, between the two PLD values",
    )


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
    from coalmine.auditor.report.wording import brief
    from coalmine.protocol.errors import StudyError, nearest

    if split not in tuple(Split):
        raise StudyError(f"unknown split {split!r}", where="--split", remedy=nearest(split, tuple(Split)))
    found = bound(tp, fp, n1, n0, delta, alpha, Split(split))
    answer(
        {"eps_lower": found.eps_lower},
        as_json,
        f"lower bound, {_confidence(alpha)}, δ = {brief(delta)} · neighbours and unit: those of the trials · formal",
    )


@app.command("clopper-pearson")
def clopper_pearson(
    x: Annotated[int, typer.Option(help="Successes.", min=0, max=10**15)],
    n: Annotated[int, typer.Option(help="Trials.", min=1, max=10**15)],
    gamma: Annotated[float, typer.Option(help="Failure probability of each one-sided bound.")],
    as_json: AsJson = False,
) -> None:
    """One-sided Clopper-Pearson bounds on a probability."""
    from coalmine.auditor import clopper_pearson as bounds

    answer(
        {"lower": float(bounds.lower(x, n, gamma)), "upper": float(bounds.upper(x, n, gamma))},
        as_json,
        f"bounds on a probability, {_confidence(gamma)} each · formal",
    )


@app.command()
def gdp(
    mu: Annotated[float, typer.Option(help="Gaussian differential privacy parameter, >= 0.")],
    delta: Delta = 1e-5,
    as_json: AsJson = False,
) -> None:
    """Epsilon of mu-GDP at delta."""
    from coalmine.auditor.gdp import eps
    from coalmine.auditor.report.wording import brief

    answer(
        {"eps": eps(mu, delta)},
        as_json,
        f"ε at δ = {brief(delta)} · neighbours and unit: those of mu · exact for mu-GDP",
    )


@app.command("one-run")
def one_run(
    canaries: Annotated[int, typer.Option(help="Canaries, each included with probability 1/2.", min=1, max=10**7)],
    guesses: Annotated[int, typer.Option(help="Guesses made.")],
    correct: Annotated[int, typer.Option(help="Guesses that were right.")],
    delta: Delta = 1e-5,
    level: Annotated[float, typer.Option(help="Significance level: 0.05 is 95 % confidence.")] = 0.05,
    as_json: AsJson = False,
) -> None:
    """One-run audits: Steinke et al. 2023 (formal) and the GDP reading of Mahloujifar et al. 2024 (heuristic)."""
    from coalmine.auditor.gdp import eps
    from coalmine.auditor.one_run import Guesses, gdp_mu_lower, steinke_eps_lower
    from coalmine.auditor.report.wording import brief
    from coalmine.protocol.errors import StudyError
    from coalmine.protocol.privacy import Assurance

    if 0.5 <= level < 1:
        raise StudyError(f"a bound that is wrong with probability {level:g}", where="level", remedy="0.05 is 95 %")
    seen = Guesses(canaries, guesses, correct)
    mu = gdp_mu_lower(seen, level)
    answer(
        {
            "steinke": {"eps": steinke_eps_lower(seen, delta, level), "assurance": Assurance.FORMAL.value},
            "fdp": {"mu": mu, "eps": eps(mu, delta), "assurance": Assurance.HEURISTIC.value},
        },
        as_json,
        f"lower bounds, {_confidence(level)} each, δ = {brief(delta)} · neighbours: add/remove one canary",
    )


app.command("one-run-plan")(many_canaries.one_run_plan)

Rate = Annotated[float, typer.Option("--p", help="Rate at which users came into train.")]
Alpha = Annotated[float, typer.Option(help="Level of every bound.")]


@app.command("feature-match")
def feature_match(
    d: Annotated[Path, typer.Option("--d", help="Matched features of each user: JSON list, numbers in a text, .npy.")],
    train: Annotated[int, typer.Option(help="T: matches held by training users.")],
    p: Rate = 0.5,
    alpha: Alpha = 0.05,
    as_json: AsJson = False,
) -> None:
    """Feature-match test for independent coins (formal; user, add/remove): Hoeffding as printed, and the exact law."""
    from math import exp

    from coalmine.auditor.disclosure.assignment import Assignment, AssignmentKind
    from coalmine.auditor.disclosure.feature_match import eps_lower, hoeffding_test, log_p_value
    from coalmine.auditor.disclosure.weighted_sum import weights
    from coalmine.deploy.disclosure.counts_file import read_counts

    each = read_counts(d)
    coins = Assignment(AssignmentKind.BERNOULLI, p, len(each), 0)
    found = weights(each)
    printed = hoeffding_test(found, train, p, alpha)
    exact = found.exact
    answer(
        {
            "p_hat": printed.p_hat,
            "p_value": printed.p_value,
            "critical": printed.critical,
            "eps_one_sided": printed.eps_one_sided,
            "eps_printed": printed.eps_printed,
            "exact_p_value": exp(log_p_value(found, train, coins, 0.0)),
            "exact_eps": eps_lower(found, train, coins, alpha),
        },
        as_json,
        f"lower bounds, {_confidence(alpha)} each (eps_printed: {_confidence(min(2 * alpha, 1.0))}), δ = 0"
        " · neighbours: add/remove · unit: user · formal",
    )
    if not exact:
        typer.echo("too many values for the exact law: the exact numbers are Chernoff bounds, still valid", err=True)


@app.command("user-match")
def user_match(
    guesses: Annotated[int, typer.Option(help="r: users guessed to be in train.")],
    correct: Annotated[int, typer.Option(help="w: of them in train.")],
    p: Rate = 0.5,
    alpha: Alpha = 0.05,
    as_json: AsJson = False,
) -> None:
    """User-match lower bound on epsilon for a number of guesses fixed beforehand (formal; user, add/remove)."""
    from coalmine.auditor.disclosure.assignment import Assignment, AssignmentKind
    from coalmine.auditor.disclosure.user_match import eps_lower

    coins = Assignment(AssignmentKind.BERNOULLI, p, max(guesses, 0), 0)
    answer(
        {"eps": eps_lower(guesses, correct, coins, alpha)},
        as_json,
        f"lower bound, {_confidence(alpha)}, δ = 0 · neighbours: add/remove · unit: user · formal",
    )


def _confidence(alpha: float) -> str:
    """Not in whole percents: 0.25 % failure is 99.75 % confidence."""
    return f"{100 * (1 - alpha):.10g} % confidence"
