"""A sweep from start to finish: run every point, write what came out, show it, track it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from coalmine.deploy.progress import Stages
from coalmine.deploy.studio import remove_if_unused, tell_tracked, writable
from coalmine.deploy.study import Study
from coalmine.deploy.sweep_file import Point
from coalmine.protocol.errors import CoalmineError, Interrupted, StudyError

if TYPE_CHECKING:
    from coalmine.auditor.result import RoundAudit
    from coalmine.auditor.sweep import Sweep, Value


def conduct_sweep(points: Sequence[Point], as_json: bool) -> None:
    """Run all points of a sweep; people read stderr, programs read stdout.

    Raises:
        CoalmineError: bad input, or a party that refuses to go on. Nothing half-written is left.
    """
    from rich.console import Console
    from rich.markup import escape

    from coalmine.auditor.report.sweep import publish, to_json, to_rich

    console = Console(stderr=True)
    stages = Stages(console)
    first = points[0].study
    folder = writable(first.folder)
    console.print(
        f"[bold]Coalmine[/bold] sweep [bold]{first.study}[/bold], {len(points)} points,"
        f" results in {escape(str(folder))}",
        highlight=False,
    )
    try:
        with stages, redirect_stdout(sys.stderr):
            sweep = _run(points, stages)
            with stages.stage("report"):
                report = publish(sweep, folder)
            tracked = None
            if first.tracking.mlflow:
                from coalmine.auditor.report.sweep import table
                from coalmine.auditor.runs import sweep_runs
                from coalmine.auditor.tracking import Tracking, track_runs

                with stages.stage("MLflow"):
                    settings = Tracking(first.tracking.team, first.tracking.uri)
                    tracked = track_runs(sweep.name, sweep_runs(sweep), list(table(sweep)), folder, settings)
    except KeyboardInterrupt:
        remove_if_unused(folder)
        raise Interrupted("interrupted", remedy="what was embedded and generated so far is kept") from None
    except CoalmineError:
        remove_if_unused(folder)
        raise
    if as_json:
        sys.stdout.write(json.dumps(to_json(sweep), allow_nan=False) + "\n")
    else:
        Console().print(to_rich(sweep))
    tell_tracked(console, tracked)
    console.print(f"report: {report}", markup=False, highlight=False, soft_wrap=True)


def _run(points: Sequence[Point], stages: Stages) -> Sweep:
    """Points that share their data share a workshop; points of one site share everything but the statistics."""
    from coalmine.auditor.sweep import Sweep, SweepPoint
    from coalmine.deploy.journal import Journal
    from coalmine.deploy.prepare import people
    from coalmine.deploy.workshop import open_workshop

    _check(points)
    crowds = {}
    with stages.stage("data"):
        for point in points:
            key = _crowd(point.study)
            if key not in crowds:
                crowds[key] = people(point.study)
    sites = points[0].study.folder / "sites"
    shutil.rmtree(sites, ignore_errors=True)  # banks of an earlier sweep may be others; all of it is simulated
    audits: list[RoundAudit | None] = [None] * len(points)
    for parts in _groups(points, _parts):
        with open_workshop(points[parts[0]].study, stages) as workshop:
            from coalmine.deploy.sweep import run_site, site

            for number, place in enumerate(_groups([points[index] for index in parts], site)):
                chosen = [parts[index] for index in place]
                study = points[chosen[0]].study
                journal = Journal(sites / f"{parts[0]}-{number}")
                found = run_site([points[index].study for index in chosen], crowds[_crowd(study)], workshop, journal)
                for index, audit in zip(chosen, found, strict=True):
                    audits[index] = audit
    return Sweep(
        points[0].study.study,
        tuple(points[0].values),
        tuple(
            SweepPoint({key: _plain(value) for key, value in point.values.items()}, audit)
            for point, audit in zip(points, audits, strict=True)
            if audit is not None
        ),
        dict(stages.seconds),
    )


def _check(points: Sequence[Point]) -> None:
    """What cannot differ between the points of one sweep.

    Raises:
        StudyError: a swept key that names results, or several rounds.
    """
    for key in points[0].values:
        if key in ("study", "output", "seed") or key.startswith(
            ("tracking", "execution", "utility", "disclosures", "rounds")
        ):
            raise StudyError(f"{key} cannot be swept", where=f"sweep: {key}", remedy="run several studies instead")
    if points[0].study.rounds.count > 1:
        raise StudyError(
            "a sweep audits single rounds",
            where="rounds.count",
            remedy="set it to 1; a later round's bank can be swept by bank.file",
        )
    if points[0].study.randomness.kind == "protected":
        raise StudyError("a sweep is simulated", where="randomness.kind", remedy="set it to simulated")


def _groups(points: Sequence[Point], key: Callable[[Study], str]) -> list[list[int]]:
    """Indices of points with equal keys, in order of first appearance."""
    groups: dict[str, list[int]] = {}
    for index, point in enumerate(points):
        groups.setdefault(key(point.study), []).append(index)
    return list(groups.values())


def _crowd(study: Study) -> str:
    """What decides who is in which split."""
    keys: Any = {"data": True, "seed": True, "privacy": {"max_records"}, "audit": {"canaries", "canary_records"}}
    return study.model_dump_json(include=keys)


def _parts(study: Study) -> str:
    """What decides the parts of a workshop."""
    return study.model_dump_json(include={"encoder": True, "generator": True, "execution": True})


def _plain(value: object) -> Value:
    """A swept value as it is shown: keys that change together by their names, lists by their parts."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(given)}" for key, given in value.items())
    if isinstance(value, list):
        return ", ".join(str(_plain(part)) for part in value)
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
