"""A study from start to finish: run it, write what it found, show it, track it."""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from coalmine.deploy.progress import Stages
from coalmine.deploy.study import Study
from coalmine.protocol.errors import CoalmineError, Interrupted, StorageError

if TYPE_CHECKING:
    from rich.console import Console

    from coalmine.auditor.tracking import Tracked
    from coalmine.deploy.manifest import Manifest
    from coalmine.deploy.prepare import People
    from coalmine.deploy.run import Outcome


def conduct(
    study: Study, as_json: bool, *, resume: bool = False, accept_changes: bool = False, replace: bool = False
) -> None:
    """Run a study; people read stderr, programs read stdout.

    Args:
        resume: go on with what the study's folder holds. accept_changes: even if the study is not the same any more.
        replace: start anew even if the folder holds another study.

    Raises:
        CoalmineError: bad input, or a party that refuses to go on. Nothing half-written is left.
    """
    from rich.console import Console
    from rich.markup import escape

    from coalmine.auditor.report.table import to_rich

    console = Console(stderr=True)
    stages = Stages(console)
    folder = writable(study.folder)
    console.print(
        f"[bold]Coalmine[/bold] study [bold]{study.study}[/bold], results in {escape(str(folder))}", highlight=False
    )
    try:
        with stages:
            with redirect_stdout(sys.stderr):  # Ray prints about lost workers; stdout is for findings
                crowd, manifest = _begin(study, stages, resume, accept_changes, replace)
                outcome = _audit(study, stages, crowd)
            if as_json:
                sys.stdout.write(_findings(outcome) + "\n")
                sys.stdout.flush()
            with redirect_stdout(sys.stderr):
                report = _publish(outcome, stages, folder)
                tracked = _track(study, outcome, stages, folder, manifest)
    except KeyboardInterrupt:
        remove_if_unused(folder)
        raise Interrupted("interrupted", remedy="what was embedded and generated so far is kept") from None
    except CoalmineError:
        remove_if_unused(folder)
        raise
    if not as_json:
        people = Console()
        if outcome.rounds is None:
            people.print(to_rich(outcome.audit, people.width))
        else:
            from coalmine.auditor.report.rounds import to_rich as rounds_to_rich

            people.print(rounds_to_rich(outcome.rounds, people.width))
        if outcome.disclosures:
            from coalmine.auditor.disclosure.report.table import to_rich as disclosures_to_rich

            people.print(disclosures_to_rich(outcome.disclosures[-1].audit, people.width))
    tell_tracked(console, tracked)
    console.print(f"report: {report}", markup=False, highlight=False, soft_wrap=True)


def _begin(study: Study, stages: Stages, resume: bool, accept_changes: bool, replace: bool) -> tuple[People, Manifest]:
    """Everything that a mistake in the input can stop comes before workers are started."""
    from coalmine.deploy.manifest import begin
    from coalmine.deploy.parts import randomness
    from coalmine.deploy.path import claims
    from coalmine.deploy.prepare import people
    from coalmine.server.bank_file import read_bank

    with stages.stage("data"):
        if study.bank.file is not None:
            read_bank(study.bank.file)
        crowd = people(study)
        if study.privacy.max_eps is not None:
            claims(study)
        manifest = begin(study, crowd.digest, resume=resume, accept_changes=accept_changes, replace=replace)
        randomness(study)
    return crowd, manifest


def _audit(study: Study, stages: Stages, crowd: People) -> Outcome:
    from coalmine.deploy.journal import Journal
    from coalmine.deploy.workshop import open_workshop

    with open_workshop(study, stages) as workshop:
        from coalmine.deploy.run import run

        return run(study, crowd, workshop, Journal(study.folder))


def _publish(outcome: Outcome, stages: Stages, folder: Path) -> Path:
    from coalmine.auditor.report.publish import publish
    from coalmine.server.bank_file import write_bank

    with stages.stage("report"):
        write_bank(outcome.steps[0].bank, folder / "bank.parquet")
        for number, found in enumerate(outcome.disclosures, 1):
            from coalmine.auditor.disclosure.report.publish import publish as publish_disclosures

            publish_disclosures(found, writable(folder / "disclosures" / f"round-{number}"))
        if outcome.rounds is None:
            return publish(outcome.audit, folder)
        from coalmine.auditor.report.rounds import publish as publish_rounds

        page = publish_rounds(outcome.rounds, folder)
        publish(outcome.audit, folder)
        return page


def _track(study: Study, outcome: Outcome, stages: Stages, folder: Path, manifest: Manifest) -> Tracked | None:
    if not study.tracking.mlflow:
        return None
    from coalmine.auditor.tracking import Begun, Tracking, store_of, track, track_runs

    with stages.stage("MLflow"):
        settings = Tracking(study.tracking.team, store_of(study.tracking.uri, folder))
        begun = Begun(manifest.record, manifest.began)
        if outcome.rounds is None:
            tracked = track(outcome.audit, folder, settings, begun=begun)
        else:
            from coalmine.auditor.report.rounds import records
            from coalmine.auditor.runs import rounds_runs

            told = rounds_runs(outcome.audit, outcome.rounds)
            tracked = track_runs(study.study, told, records(outcome.rounds), folder, settings, begun)
        for number, found in enumerate(outcome.disclosures, 1):
            from coalmine.auditor.disclosure.report.rows import records as disclosure_records
            from coalmine.auditor.disclosure.runs import runs as disclosure_runs

            own = Begun(f"{manifest.record}-disclosures-{number}", manifest.began)
            place = folder / "disclosures" / f"round-{number}"
            track_runs(study.study, disclosure_runs(found.audit), disclosure_records(found.audit), place, settings, own)
    return tracked


def tell_tracked(console: Console, tracked: Tracked | None) -> None:
    """Say where MLflow has the runs, or why not."""
    if tracked is not None:
        notice = tracked.notice or f"MLflow: {tracked.store}, run {tracked.run_id}"
        console.print(notice, style="yellow" if tracked.notice else "", markup=False, highlight=False, soft_wrap=True)


def _findings(outcome: Outcome) -> str:
    """What programs read: of all rounds together, where there are several."""
    if outcome.rounds is None:
        from coalmine.auditor.report.record import dumps

        return dumps(outcome.audit)
    from coalmine.auditor.report.rounds import to_json

    return json.dumps(to_json(outcome.rounds), allow_nan=False, ensure_ascii=False)


def remove_if_unused(folder: Path) -> None:
    """Leave no folder behind that holds nothing, or nothing but the note that a study began."""
    left = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    if left in ([], ["journal/manifest.json"]):
        shutil.rmtree(folder, ignore_errors=True)


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
            f"results cannot be written: {error.strerror or error}",
            where=str(folder),
            remedy="set output, or --out",
        ) from None
    return folder
