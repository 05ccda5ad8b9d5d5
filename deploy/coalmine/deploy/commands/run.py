"""`coalmine run`: a study from its file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coalmine.deploy.commands.output import AsJson
from coalmine.protocol.errors import StudyError

if TYPE_CHECKING:
    from coalmine.deploy.study import Study

_OF_VOTES = {"data", "bank", "generator", "encoder", "audit", "privacy", "rounds"}


def run(
    study: Annotated[Path, typer.Argument(help="Study file (YAML); `coalmine init` writes one.")],
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="Override a key, e.g. privacy.sigma=0.7; may be repeated.")
    ] = None,
    as_json: AsJson = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the study was stopped.")] = False,
    accept_changes: Annotated[
        bool, typer.Option("--accept-changes", help="Resume although the study, its data or packages changed.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what another study left in the folder.")] = False,
) -> None:
    """Run a study, or every point of a sweep: table and figures for people, findings and MLflow for programs."""
    from coalmine.deploy.sweep_file import read_points

    points = read_points(study, overrides or ())
    if points:
        _require_votes(points[0].study, study)
        from coalmine.deploy.sweep_studio import conduct_sweep

        if resume or accept_changes:
            raise StudyError("a sweep is not resumed", where="--resume", remedy="run it again; what is cached is kept")
        conduct_sweep(points, as_json)
        return
    from coalmine.deploy.studio import conduct
    from coalmine.deploy.study_file import read_study

    found = read_study(study, overrides or ())
    _require_votes(found, study)
    conduct(found, as_json, resume=resume, accept_changes=accept_changes, replace=force)


def _require_votes(found: Study, file: Path) -> None:
    """A file about training alone would otherwise be run as a study of Private Evolution, at its defaults."""
    if found.training is not None and not found.model_fields_set & _OF_VOTES:
        raise StudyError(
            "this study is about training alone",
            where=str(file),
            remedy="use `coalmine train` or `coalmine audit training`; to audit Private Evolution too, give it `data:`",
        )
