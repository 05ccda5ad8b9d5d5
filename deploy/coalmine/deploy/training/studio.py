"""Training studies from start to finish: run, write, show, track."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coalmine.deploy.progress import Stages
from coalmine.deploy.studio import remove_if_unused, tell_tracked, writable
from coalmine.deploy.study import Study
from coalmine.protocol.errors import CoalmineError, Interrupted

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from coalmine.auditor.runs import Run

TRAINED, AUDITED = "findings.json", "membership.json"


def conduct_training(study: Study, as_json: bool, *, resume: bool = False) -> None:
    """`coalmine train`.

    Raises:
        CoalmineError: bad input, or a party that refuses to go on; the checkpoint stays.
    """
    from coalmine.auditor.membership.result import trained_json
    from coalmine.auditor.membership.runs import trained_runs
    from coalmine.auditor.membership.table import trained_rich
    from coalmine.deploy.training.train import train

    with _opened(study, "go on with --resume") as (console, stages, folder):
        with stages, redirect_stdout(sys.stderr):
            found, ready = train(study, folder, stages, resume=resume)
            for notice in ready.notices:
                console.print(notice, style="yellow", highlight=False)
            _write(folder / TRAINED, trained_json(found))
            tracked = _track(study, trained_runs(found), [], folder, stages)
        _tell(trained_json(found), trained_rich(found), as_json)
        tell_tracked(console, tracked)
        console.print(f"results: {folder}", highlight=False, soft_wrap=True)


def conduct_audit(study: Study, as_json: bool) -> None:
    """`coalmine audit training`.

    Raises:
        CoalmineError: bad input, or a model that diverged.
    """
    from coalmine.auditor.membership.result import audit_json
    from coalmine.auditor.membership.runs import audit_records, audit_runs
    from coalmine.auditor.membership.table import audit_rich
    from coalmine.deploy.cluster import available_cores, cluster
    from coalmine.deploy.training.prepare import prepared

    with _opened(study, "run it again") as (console, stages, folder):
        with stages, redirect_stdout(sys.stderr):
            with stages.stage("data"):
                ready = prepared(study)
            for notice in ready.notices:
                console.print(notice, style="yellow", highlight=False)
            with ExitStack() as workers:
                with stages.stage("start workers"):
                    workers.enter_context(cluster(study.execution.workers or available_cores(), _STORE))
                    from coalmine.deploy.training.audit import audit_training
                found = audit_training(study, ready, stages)
            _write(folder / AUDITED, audit_json(found))
            tracked = _track(study, audit_runs(found), audit_records(found), folder, stages)
        _tell(audit_json(found), audit_rich(found), as_json)
        tell_tracked(console, tracked)
        console.print(f"results: {folder}", highlight=False, soft_wrap=True)


_STORE = 256 << 20
"""Bytes of Ray's object store: the samples, and results on their way."""


@contextmanager
def _opened(study: Study, remedy: str) -> Iterator[tuple[Console, Stages, Path]]:
    from rich.console import Console

    console = Console(stderr=True)
    folder = writable(study.folder / "training")
    console.print(f"[bold]Coalmine[/bold] training [bold]{study.study}[/bold], results in {folder}", highlight=False)
    try:
        yield console, Stages(console), folder
    except KeyboardInterrupt:
        raise Interrupted("interrupted", remedy=remedy) from None
    except CoalmineError:
        remove_if_unused(folder)
        raise


def _write(path: Path, document: dict[str, Any]) -> None:
    from coalmine.auditor.report.write import write_text

    write_text(path, json.dumps(document, allow_nan=False, ensure_ascii=False, indent=1) + "\n")


def _track(study: Study, told: tuple[Run, ...], table: list[dict[str, Any]], folder: Path, stages: Stages) -> Any:
    if not study.tracking.mlflow:
        return None
    from coalmine.auditor.tracking import Tracking, store_of, track_runs

    with stages.stage("MLflow"):
        settings = Tracking(study.tracking.team, store_of(study.tracking.uri, folder))
        return track_runs(study.study, told, table, folder, settings)


def _tell(document: dict[str, Any], table: RenderableType, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(document, allow_nan=False, ensure_ascii=False) + "\n")
        sys.stdout.flush()
        return
    from rich.console import Console

    Console().print(table)
