"""`coalmine run`: a study from its file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coalmine.deploy.commands.output import AsJson


def run(
    study: Annotated[Path, typer.Argument(help="Study file (YAML); `coalmine init` writes one.")],
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="Override a key, e.g. privacy.sigma=0.7; may be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a study: table and figures for people, findings.json and MLflow for programs."""
    from coalmine.deploy.studio import conduct
    from coalmine.deploy.study_file import read_study

    conduct(read_study(study, overrides or ()), as_json)
