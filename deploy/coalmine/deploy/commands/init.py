"""`coalmine init`: a commented study file to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def init(
    file: Annotated[Path, typer.Argument(help="Where to write it.")] = Path("study.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a commented study file with every key at its default."""
    import importlib.resources

    from coalmine.protocol.errors import StorageError

    template = importlib.resources.files("coalmine.deploy").joinpath("study-template.yaml").read_text(encoding="utf-8")
    try:
        with file.open("w" if force else "x", encoding="utf-8") as out:
            out.write(template)
    except FileExistsError:
        raise StorageError("the file exists", where=str(file), remedy="choose another name, or --force") from None
    except OSError as error:
        raise StorageError(f"cannot be written: {error.strerror or error}", where=str(file)) from None
    typer.echo(f"wrote {file}; next: coalmine run {file}", err=True)
