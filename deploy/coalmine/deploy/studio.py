"""A study from start to finish: run it, write what it found, show it, track it."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from coalmine.deploy.progress import Stages
from coalmine.deploy.study import Study
from coalmine.protocol.errors import Interrupted, StorageError

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

    console = Console(stderr=True)
    stages = Stages(console)
    folder = writable(study.folder)
    console.print(f"[bold]Coalmine[/bold] study [bold]{study.study}[/bold], results in {folder}", highlight=False)

    from coalmine.auditor.report.record import dumps
    from coalmine.auditor.report.table import to_rich

    try:
        with stages:
            tracked, outcome, report = _work(study, stages, folder)
    except KeyboardInterrupt:
        raise Interrupted("interrupted", remedy="what was embedded and generated so far is kept") from None
    if tracked is not None:
        notice = tracked.notice or f"MLflow: {tracked.store}, run {tracked.run_id}"
        console.print(notice, style="yellow" if tracked.notice else "", highlight=False)
    if as_json:
        sys.stdout.write(dumps(outcome.audit) + "\n")
    else:
        people = Console()
        people.print(to_rich(outcome.audit, people.width))
    console.print(f"report: {report}", highlight=False)


def _work(study: Study, stages: Stages, folder: Path) -> tuple[Tracked | None, Outcome, Path]:
    from coalmine.deploy.prepare import people
    from coalmine.deploy.workshop import open_workshop

    with stages.stage("data"):  # before workers are started, so that a mistake in the data is said at once
        crowd = people(study)
    with open_workshop(study, stages) as workshop:
        from coalmine.deploy.run import run

        outcome = run(study, crowd, workshop)

    from coalmine.auditor.report.publish import publish
    from coalmine.server.bank_file import write_bank

    with stages.stage("report"):
        write_bank(outcome.bank, folder / "bank.parquet")
        write_release(outcome.release, folder / "releases" / "round-1.parquet")
        report = publish(outcome.audit, folder)
    if not study.tracking.mlflow:
        return None, outcome, report
    from coalmine.auditor.tracking import Tracking, track

    with stages.stage("MLflow"):
        return track(outcome.audit, folder, Tracking(study.tracking.team, study.tracking.uri)), outcome, report


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
