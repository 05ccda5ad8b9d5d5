"""`coalmine selftest`: phantom canaries and planted bugs."""

from __future__ import annotations

import sys
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coalmine.deploy.commands.output import AsJson, answer

if TYPE_CHECKING:
    from coalmine.deploy.selftest.verdict import Rate, Verdict


def selftest(
    repetitions: Annotated[
        int | None, typer.Option(help="Of every mechanism; without it as planned (200).", min=1, max=100_000)
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Instead of the planned one.", min=1)] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; without it one per core.", min=1)] = None,
    as_json: AsJson = False,
) -> None:
    """Does the auditor find what is broken, and only that? Sends broken mechanisms through shards and aggregator.

    Each bug must be found by the test named for it before the first run (95 % of repetitions); on the correct mechanism
    and on phantom canaries, which are never inserted, no test may raise more alarms than its level. Ends with code 1
    otherwise. Bounds: Clopper-Pearson, formal, user level, add/remove.
    """
    from rich.console import Console

    from coalmine.deploy.cluster import available_cores
    from coalmine.deploy.progress import Stages
    from coalmine.deploy.selftest.experiment import run_selftest
    from coalmine.deploy.selftest.plan import read_plan
    from coalmine.deploy.selftest.verdict import judge

    plan = read_plan()
    times = plan.repetitions if repetitions is None else repetitions
    chosen = plan.seed if seed is None else seed
    stages = Stages(Console(stderr=True))
    with stages, stages.stage("selftest", times, "repetitions") as advance:
        found = run_selftest(chosen, times, workers or available_cores(), advance)
    verdict = judge(plan, chosen, found)
    if as_json:
        answer(_record(verdict), True)
    else:
        _show(verdict)
    if not verdict.passed:
        sys.exit(1)


def _show(verdict: Verdict) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    bugs = Table(title="planted bugs")
    for heading in ("bug", "named test", "detected", "any bound", "any two-sided", "verdict"):
        bugs.add_column(heading, overflow="fold")
    for group, detections in groupby(verdict.detections, key=lambda one: one.bug.group):
        bugs.add_section()
        bugs.add_row(f"[bold]{group}[/bold]")
        for one in detections:
            bugs.add_row(
                one.bug.name,
                one.bug.test or "(none)",
                *(_percent(rate) for rate in (one.named, one.by_bound, one.by_two_sided)),
                "ok" if one.found else "[red]missed[/red]",
            )
    correct = (_percent(rate) for rate in (verdict.correct_by_bound, verdict.correct_by_two_sided))
    bugs.add_section()
    bugs.add_row("(nothing broken)", "", "", *correct, "")
    console.print(bugs)
    alarms = Table("test", "alarms", "rate", "95 % interval", "verdict", title="false alarms on the correct mechanism")
    for alarm in verdict.false_alarms:
        alarms.add_row(
            alarm.test,
            f"{alarm.rate.times} of {alarm.rate.of}",
            _percent(alarm.rate),
            f"{100 * alarm.rate.low:.1f} to {100 * alarm.rate.high:.1f} %",
            "ok" if alarm.nominal else "[red]too many[/red]",
        )
    console.print(alarms)
    for one in verdict.detections:
        if one.bug.reason:
            console.print(f"invisible: {one.bug.name} ({one.bug.what}): {one.bug.reason}", highlight=False)
    console.print(
        f"{verdict.repetitions} repetitions, level {verdict.level:g} a test, {100 * verdict.required:g} % required: "
        + ("passed" if verdict.passed else "[red]not passed[/red]"),
        highlight=False,
    )


def _percent(rate: Rate | None) -> str:
    return "" if rate is None else f"{100 * rate.share:.1f} %"


def _record(verdict: Verdict) -> dict[str, Any]:
    def told(rate: Rate | None) -> dict[str, Any] | None:
        if rate is None:
            return None
        return {"times": rate.times, "of": rate.of, "rate": rate.share, "low": rate.low, "high": rate.high}

    return {
        "seed": verdict.seed,
        "repetitions": verdict.repetitions,
        "level": verdict.level,
        "required": verdict.required,
        "passed": verdict.passed,
        "correct": {"by_bound": told(verdict.correct_by_bound), "by_two_sided": told(verdict.correct_by_two_sided)},
        "bugs": [
            {
                "name": one.bug.name,
                "group": str(one.bug.group),
                "what": one.bug.what,
                "test": one.bug.test,
                "detected": told(one.named),
                "by_bound": told(one.by_bound),
                "by_two_sided": told(one.by_two_sided),
                "found": one.found,
                **({"reason": one.bug.reason} if one.bug.reason else {}),
            }
            for one in verdict.detections
        ],
        "false_alarms": [
            {"test": one.test, **(told(one.rate) or {}), "nominal": one.nominal} for one in verdict.false_alarms
        ],
    }
