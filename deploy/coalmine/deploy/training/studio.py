"""Training studies from start to finish: run, write, show, track."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coalmine.deploy.progress import Stages
from coalmine.deploy.studio import remove_if_unused, tell_tracked, writable
from coalmine.deploy.study import Study
from coalmine.protocol.errors import CoalmineError, Interrupted, StudyError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from coalmine.auditor.runs import Run


def conduct_training(study: Study, as_json: bool, *, resume: bool = False, replace: bool = False) -> None:
    """`coalmine train`.

    Args:
        resume: go on from the checkpoint. replace: start anew whatever another run left in the folder.

    Raises:
        CoalmineError: bad input, or a party that refuses to go on; the checkpoint stays.
    """
    from coalmine.auditor.membership.result import trained_json
    from coalmine.auditor.membership.runs import trained_runs
    from coalmine.auditor.membership.table import trained_rich
    from coalmine.auditor.report.write import write_json
    from coalmine.deploy.training.prepare import CHECKPOINT, TRAINED
    from coalmine.deploy.training.train import train

    with opened(study, resume=resume, replace=replace) as (console, stages, folder):
        if not resume and (folder / CHECKPOINT).is_file() and not (folder / TRAINED).is_file():
            console.print("starting anew; --resume would go on from the checkpoint", style="yellow", highlight=False)
        with stages, redirect_stdout(sys.stderr):
            found, ready = train(study, folder, stages, resume=resume, replace=replace)
            for notice in ready.notices:
                console.print(notice, style="yellow", markup=False, highlight=False)
            write_json(folder / TRAINED, trained_json(found))
            tracked = track(study, trained_runs(found), [], folder, stages)
        tell(trained_json(found), trained_rich(found), as_json)
        tell_tracked(console, tracked)
        console.print(f"results: {folder}", markup=False, highlight=False, soft_wrap=True)


@contextmanager
def opened(study: Study, *, resume: bool, replace: bool) -> Iterator[tuple[Console, Stages, Path]]:
    """The folder of results, with its console; what stops the work is said in words.

    Raises:
        StudyError: asked to go on and to start anew.
    """
    from rich.console import Console
    from rich.markup import escape

    if resume and replace:
        raise StudyError("--resume goes on, --force starts anew", where="--force", remedy="say one of them")
    console = Console(stderr=True)
    folder = writable(study.folder / "training")
    console.print(
        f"[bold]Coalmine[/bold] training [bold]{study.study}[/bold], results in {escape(str(folder))}", highlight=False
    )
    try:
        yield console, Stages(console), folder
    except KeyboardInterrupt:
        raise Interrupted("interrupted", remedy="go on with --resume") from None
    except CoalmineError:
        remove_if_unused(folder)
        raise


def track(study: Study, told: tuple[Run, ...], table: list[dict[str, Any]], folder: Path, stages: Stages) -> Any:
    """Log runs, where the study wants it."""
    if not study.tracking.mlflow:
        return None
    from coalmine.auditor.tracking import Tracking, store_of, track_runs

    with stages.stage("MLflow"):
        settings = Tracking(study.tracking.team, store_of(study.tracking.uri, folder))
        return track_runs(study.study, told, table, folder, settings)


def tell(document: dict[str, Any], table: RenderableType, as_json: bool) -> None:
    """On stdout."""
    if as_json:
        sys.stdout.write(json.dumps(document, allow_nan=False, ensure_ascii=False) + "\n")
        sys.stdout.flush()
        return
    from rich.console import Console

    Console().print(table)
