"""A study from start to finish: run it, write what it found, show it, track it."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from coalmine.deploy.progress import Stages
from coalmine.deploy.study import Study
from coalmine.protocol.errors import CoalmineError, Interrupted, StorageError

if TYPE_CHECKING:
    from coalmine.auditor.tracking import Tracked
    from coalmine.deploy.run import Outcome
    from coalmine.protocol.release import Release


def conduct(study: Study, as_json: bool) -> None:
    """Run a study; people read stderr, programs read stdout.

    Raises:
        CoalmineError: bad input, or a party that refuses to go on. Nothing half-written is left.
    """
    from rich.console import Console

    from coalmine.auditor.report.record import dumps
    from coalmine.auditor.report.table import to_rich

    console = Console(stderr=True)
    stages = Stages(console)
    folder = writable(study.folder)
    console.print(f"[bold]Coalmine[/bold] study [bold]{study.study}[/bold], results in {folder}", highlight=False)
    try:
        with stages:
            with redirect_stdout(sys.stderr):  # Ray prints about lost workers; stdout is for findings
                outcome = _audit(study, stages)
            if as_json:
                sys.stdout.write(dumps(outcome.audit) + "\n")
                sys.stdout.flush()
            with redirect_stdout(sys.stderr):
                report = _publish(outcome, stages, folder)
                tracked = _track(study, outcome, stages, folder)
    except KeyboardInterrupt:
        _remove_if_empty(folder)
        raise Interrupted("interrupted", remedy="what was embedded and generated so far is kept") from None
    except CoalmineError:
        _remove_if_empty(folder)
        raise
    if not as_json:
        people = Console()
        people.print(to_rich(outcome.audit, people.width))
    if tracked is not None:
        notice = tracked.notice or f"MLflow: {tracked.store}, run {tracked.run_id}"
        console.print(notice, style="yellow" if tracked.notice else "", highlight=False, soft_wrap=True)
    console.print(f"report: {report}", highlight=False, soft_wrap=True)


def _audit(study: Study, stages: Stages) -> Outcome:
    """Everything that a mistake in the input can stop comes before workers are started."""
    from coalmine.deploy.parts import randomness
    from coalmine.deploy.prepare import people
    from coalmine.deploy.workshop import open_workshop
    from coalmine.server.bank_file import read_bank

    with stages.stage("data"):
        randomness(study)
        if study.bank.file is not None:
            read_bank(study.bank.file)
        crowd = people(study)
    with open_workshop(study, stages) as workshop:
        from coalmine.deploy.run import run

        return run(study, crowd, workshop)


def _publish(outcome: Outcome, stages: Stages, folder: Path) -> Path:
    from coalmine.auditor.report.publish import publish
    from coalmine.server.bank_file import write_bank

    with stages.stage("report"):
        write_bank(outcome.bank, folder / "bank.parquet")
        write_release(outcome.release, folder / "releases" / "round-1.parquet")
        return publish(outcome.audit, folder)


def _track(study: Study, outcome: Outcome, stages: Stages, folder: Path) -> Tracked | None:
    if not study.tracking.mlflow:
        return None
    from coalmine.auditor.tracking import Tracking, track

    with stages.stage("MLflow"):
        return track(outcome.audit, folder, Tracking(study.tracking.team, study.tracking.uri))


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def writable(folder: Path) -> Path:
    """Make the folder of results.

    Raises:
        StorageError: it cannot be made or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise StorageError(
            f"results cannot be written: {error.strerror or error}", where=str(folder), remedy="set output"
        ) from None
    return folder


def write_release(release: Release, path: Path) -> None:
    """Parquet with the noisy histogram and, in its metadata, what a reader must know about it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from coalmine.auditor.report.write import write_bytes

    metadata = {
        "coalmine.round": str(release.round),
        "coalmine.commitment": release.commitment.digest,
        "coalmine.randomness": release.randomness,
        "coalmine.mechanism": repr(release.mechanism),
    }
    table = pa.table({"histogram": pa.array(release.histogram)}).replace_schema_metadata(metadata)
    file = io.BytesIO()
    pq.write_table(table, file)
    write_bytes(writable(path.parent) / path.name, file.getvalue())
