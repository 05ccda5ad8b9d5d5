"""`coalmine demo`: the main job on real text, from an empty cache, in minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coalmine.deploy.commands.output import AsJson


def demo(
    output: Annotated[Path, typer.Option(help="Folder of results.")] = Path("runs/demo"),
    overrides: Annotated[list[str] | None, typer.Option("--set", help="Override a key of the demo's study.")] = None,
    as_json: AsJson = False,
) -> None:
    """Audit one round of Private Evolution on State of the Union addresses, each address a user."""
    from coalmine.deploy.demo import demo_study
    from coalmine.deploy.studio import conduct
    from coalmine.deploy.study_file import build_study

    conduct(build_study({**demo_study(), "output": str(output)}, overrides or (), where="demo"), as_json)
