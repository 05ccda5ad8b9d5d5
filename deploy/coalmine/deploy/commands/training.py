"""`coalmine train` and `coalmine audit training`: federated DP-SGD and its audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coalmine.deploy.commands.output import AsJson

StudyFile = Annotated[Path, typer.Argument(help="Study file with a section training.")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", help="Override a key, e.g. training.sigma=1.2; may be repeated.")
]


def train(
    study: StudyFile,
    overrides: Overrides = None,
    as_json: AsJson = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint of a stopped run.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what another run left in the folder.")] = False,
) -> None:
    """Train one model with federated DP-SGD: Flower's apps in this process. Tells the claim and the accuracy."""
    from coalmine.deploy.study_file import read_study
    from coalmine.deploy.training.studio import conduct_training

    conduct_training(read_study(study, overrides or ()), as_json, resume=resume, replace=force)


def audit_training(
    study: StudyFile,
    overrides: Overrides = None,
    as_json: AsJson = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the shadow models that a stopped audit has finished.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what another run left in the folder.")] = False,
) -> None:
    """Shadow models with and without canaries, with and without the filter, on all cores (record level, add/remove).

    Every number is marked formal, exact or heuristic. Writes report.html, figures and membership.json into the study's
    folder; a section `sweep` makes one report of several studies, e.g. of several claims.
    """
    from coalmine.deploy.study_file import read_study
    from coalmine.deploy.sweep_file import read_points
    from coalmine.deploy.training.audit_studio import conduct_audit

    points = read_points(study, overrides or ())
    conduct_audit(
        [(point.values, point.study) for point in points] or [({}, read_study(study, overrides or ()))],
        as_json,
        resume=resume,
        replace=force,
    )
