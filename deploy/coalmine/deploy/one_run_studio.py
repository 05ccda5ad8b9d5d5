"""A one-run audit from start to finish: run it, write what it found, show it, track it."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

from coalmine.deploy.progress import Stages
from coalmine.deploy.studio import remove_if_unused, tell_tracked, writable
from coalmine.deploy.study import Study
from coalmine.protocol.errors import CoalmineError, Interrupted

if TYPE_CHECKING:
    from pathlib import Path

    from coalmine.auditor.one_run_audit import OneRunStudy
    from coalmine.auditor.tracking import Tracked


def conduct_one_run(study: Study, as_json: bool) -> None:
    """Run the audit of section ``audit.one_run``; people read stderr, programs read stdout.

    Everything is written into the folder ``one-run`` in the study's: the study's own report stays as it is.

    Raises:
        CoalmineError: bad input, or a party that refuses to go on. Nothing half-written is left.
    """
    from rich.console import Console

    from coalmine.auditor.report.one_run import publish, to_json, to_rich

    console = Console(stderr=True)
    stages = Stages(console)
    folder = writable(study.folder / "one-run")
    try:
        with stages, redirect_stdout(sys.stderr):
            found = _run(study, stages)
            with stages.stage("report"):
                report = publish(found, folder)
            tracked = _track(study, found, folder, stages)
    except KeyboardInterrupt:
        _tidy(study, folder)
        raise Interrupted("interrupted", remedy="what was embedded so far is kept") from None
    except CoalmineError:
        _tidy(study, folder)
        raise
    if as_json:
        sys.stdout.write(json.dumps(to_json(found), allow_nan=False, ensure_ascii=False) + "\n")
    else:
        Console().print(to_rich(found))
    tell_tracked(console, tracked)
    console.print(f"report: {report}", markup=False, highlight=False, soft_wrap=True)


def _run(study: Study, stages: Stages) -> OneRunStudy:
    from coalmine.deploy.prepare import people
    from coalmine.deploy.workshop import open_workshop

    with stages.stage("data"):
        crowd = people(study, canaries=False)
    with open_workshop(study, stages) as workshop:
        from coalmine.deploy.one_run import run_one_run

        return run_one_run(study, crowd, workshop)


def _track(study: Study, found: OneRunStudy, folder: Path, stages: Stages) -> Tracked | None:
    if not study.tracking.mlflow:
        return None
    from coalmine.auditor.one_run_runs import one_run_runs
    from coalmine.auditor.report.one_run import records
    from coalmine.auditor.tracking import Tracking, track_runs

    with stages.stage("MLflow"):
        settings = Tracking(study.tracking.team, study.tracking.uri)
        told, table = one_run_runs(found), records(found)
        return track_runs(study.study, told, table, study.folder, settings, results=folder)


def _tidy(study: Study, folder: Path) -> None:
    remove_if_unused(folder)
    remove_if_unused(study.folder)
