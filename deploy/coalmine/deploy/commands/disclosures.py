"""`coalmine audit disclosures`: is this synthetic data safe to release?"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from coalmine.deploy.commands.output import AsJson

if TYPE_CHECKING:
    from coalmine.auditor.disclosure.audit import Audited
    from coalmine.auditor.disclosure.settings import Settings
    from coalmine.deploy.progress import Stages

Word = TypeVar("Word", bound=StrEnum)
Number = TypeVar("Number", int, float)


def disclosures(
    train: Annotated[Path, typer.Option(help="Private records that the generator saw (CSV, JSONL, Parquet).")],
    holdout: Annotated[Path, typer.Option(help="Private records of other users of the same kind, never seen by it.")],
    synthetic: Annotated[Path, typer.Option(help="Its output.")],
    user: Annotated[
        str | None, typer.Option(help='Column of user ids. Default: "user" if there is one; else each row is a user.')
    ] = None,
    text: Annotated[str, typer.Option(help="Column of texts, in all three files.")] = "text",
    classes: Annotated[str, typer.Option(help="What to look for, with commas between.")] = "pii,regurgitation,semantic",
    assignment: Annotated[
        str,
        typer.Option(help="How users came into train: bernoulli (own coins), fixed-size (drawn), unknown (heuristic)."),
    ] = "unknown",
    p: Annotated[float | None, typer.Option(help="Rate of train with bernoulli; 0.5 if not given.")] = None,
    k: Annotated[str, typer.Option(help="Users that hold a rare feature; further numbers are a sweep: 1,2,3.")] = "1",
    rarity: Annotated[
        str, typer.Option(help="Rarest share of users for the two-sample test; further numbers are a sweep.")
    ] = "0.05,0.1,0.5",
    alpha: Annotated[float, typer.Option(help="Level of every bound, and of all verdicts together.")] = 0.05,
    delta: Annotated[float, typer.Option(help="Of the user-match bound; bernoulli with p = 0.5 only.")] = 0.0,
    eps: Annotated[float | None, typer.Option(help="An epsilon that the generator claims, to be tested.")] = None,
    guesses: Annotated[
        str, typer.Option(help="How users are guessed by closeness: declared, split (threshold from half), grid.")
    ] = "declared",
    guess_share: Annotated[float, typer.Option(help="Share of users that is guessed, when declared.")] = 0.05,
    canary: Annotated[str | None, typer.Option(help="Column that marks inserted canary users (true or false).")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the report, figures and findings.json.")] = None,
    show_text: Annotated[
        bool, typer.Option("--show-text", help="Write the worst witnesses with their private text to witnesses.html.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the audit that the folder holds.")] = False,
    seed: Annotated[int, typer.Option(help="Of ties, splits and permutations.", min=0)] = 0,
    name: Annotated[str, typer.Option(help="Of the audit, in reports and MLflow.")] = "disclosures",
    mlflow: Annotated[bool, typer.Option("--mlflow/--no-mlflow", help="Track it beside the report.")] = True,
    team: Annotated[str, typer.Option(help="The MLflow experiment is <team>/<name>.")] = "default",
    as_json: AsJson = False,
) -> None:
    """Does synthetic data give away its training users? Needs training and held-out records and the output, no model.

    One verdict per class: leaks; no evidence at this power; too little evidence to say. The tests are exact if users
    came into train at random and --assignment says how; otherwise every verdict is heuristic. The exit code is 0
    whatever the verdict; with --json, scripts read it from "classes".
    """
    import sys

    from rich.console import Console

    from coalmine.auditor.disclosure.assignment import AssignmentKind
    from coalmine.auditor.disclosure.report.record import dumps
    from coalmine.auditor.disclosure.report.table import to_rich
    from coalmine.auditor.disclosure.settings import Settings
    from coalmine.auditor.disclosure.user_match import Rule
    from coalmine.auditor.tracking import Tracking
    from coalmine.deploy.disclosure.classes import feature_classes
    from coalmine.deploy.disclosure.files import ThreeFiles
    from coalmine.deploy.disclosure.run import audit_files
    from coalmine.deploy.progress import Stages
    from coalmine.protocol.errors import StudyError
    from coalmine.protocol.unicode import is_unicode

    if show_text and out is None:
        raise StudyError("there is no folder for private text", where="--show-text", remedy="name one with --out")
    if out is not None:
        if mlflow:
            Tracking(team)
        _check_free(out, force=force)
    if not is_unicode(name):
        raise StudyError("the name holds half a character", where="--name", remedy="needs text")
    settings = Settings(
        ks=tuple(_numbers(k, int, "--k")),
        rarities=tuple(_numbers(rarity, float, "--rarity")),
        alpha=alpha,
        delta=delta,
        claimed_eps=eps,
        rule=_word(guesses, Rule, "--guesses"),
        guess_share=guess_share,
        seed=seed,
    )
    kind = _word(assignment, AssignmentKind, "--assignment")
    _check_delta(settings, kind, p)
    names = [word.strip() for word in classes.split(",")]
    console = Console(stderr=True)
    stages = Stages(console)
    with stages:
        found = audit_files(
            ThreeFiles(train, holdout, synthetic, user, text, canary),
            lambda: feature_classes(names),
            kind,
            p,
            settings,
            name=name,
            stages=stages,
        )
        if out is not None:
            _publish(found, out, show_text, mlflow, team, stages, console)
    if as_json:
        sys.stdout.write(dumps(found.audit))
        return
    people = Console()
    people.print(to_rich(found.audit, people.width))


def _publish(
    found: Audited, out: Path, show_text: bool, mlflow: bool, team: str, stages: Stages, console: object
) -> None:
    from rich.console import Console

    from coalmine.auditor.disclosure.report.publish import WITNESSES, publish
    from coalmine.deploy.studio import writable

    assert isinstance(console, Console)
    folder = writable(out)
    with stages.stage("report"):
        report = publish(found, folder, show_text=show_text)
    if mlflow:
        from coalmine.auditor.disclosure.report.rows import records
        from coalmine.auditor.disclosure.runs import runs
        from coalmine.auditor.tracking import Tracking, track_runs

        with stages.stage("MLflow"):
            tracked = track_runs(found.audit.name, runs(found.audit), records(found.audit), folder, Tracking(team))
        notice = tracked.notice or f"MLflow: {tracked.store}, run {tracked.run_id}"
        console.print(notice, style="yellow" if tracked.notice else "", markup=False, highlight=False, soft_wrap=True)
    console.print(f"report: {report}", markup=False, highlight=False, soft_wrap=True)
    if show_text:
        console.print(
            f"private text: {folder / WITNESSES}", style="yellow", markup=False, highlight=False, soft_wrap=True
        )


def _check_free(out: Path, *, force: bool) -> None:
    """Before anything is read: an audit of other files would be lost, and its verdict taken for theirs."""
    from coalmine.auditor.disclosure.report.record import FINDINGS
    from coalmine.deploy.studio import writable
    from coalmine.protocol.errors import StudyError

    if (writable(out) / FINDINGS).exists() and not force:
        raise StudyError("it holds an audit already", where=str(out), remedy="name another --out, or say --force")


def _check_delta(settings: Settings, kind: str, p: float | None) -> None:
    """Before anything is read: no formula is known for other assignments."""
    from coalmine.auditor.disclosure.assignment import AssignmentKind
    from coalmine.protocol.errors import StudyError

    if settings.delta > 0 and (kind != AssignmentKind.BERNOULLI or p not in (None, 0.5)):
        raise StudyError(
            "no delta term is known for this assignment",
            where="--delta",
            remedy="set it to 0, or assign users by fair coins and say --assignment bernoulli",
        )


def _word(word: str, known: type[Word], where: str) -> Word:
    from coalmine.protocol.errors import StudyError, nearest

    allowed = [str(one) for one in known]
    if word not in allowed:
        raise StudyError(f"unknown value {word!r}", where=where, remedy=nearest(word, allowed))
    return known(word)


def _numbers(words: str, kind: type[Number], where: str) -> list[Number]:
    from coalmine.protocol.errors import StudyError

    try:
        return [kind(word) for word in words.split(",")]
    except ValueError:
        raise StudyError(f"{words!r} is not allowed", where=where, remedy="needs numbers with commas between") from None
