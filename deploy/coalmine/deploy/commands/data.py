"""`coalmine data`: what a data set looks like."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from coalmine.deploy.commands.output import AsJson, answer

app = typer.Typer(no_args_is_help=True, help="Look at data before it is used.")


@app.callback()
def data() -> None:
    """Look at data before it is used."""


@app.command()
def describe(
    file: Annotated[Path, typer.Argument(help="JSONL, CSV or Parquet; or the built-in name sotu.")],
    user: Annotated[str, typer.Option(help="Column of user ids.")] = "user",
    text: Annotated[str, typer.Option(help="Column of texts.")] = "text",
    label: Annotated[str, typer.Option(help="Column of labels, if there is one.")] = "label",
    as_json: AsJson = False,
) -> None:
    """Users, records per user, labels, duplicates and problems. No record is printed."""
    from coalmine.clients.data.describe import LONG_CHARACTERS, SHORT_WORDS
    from coalmine.clients.data.describe import describe as look
    from coalmine.clients.data.files import FileSource
    from coalmine.clients.data.load import examine
    from coalmine.clients.data.rows import Columns
    from coalmine.clients.data.sotu import SotuSource

    builtin = str(file) == "sotu" and not file.exists()
    reading = examine(SotuSource() if builtin else FileSource(file, Columns(user, text, label)))
    seen = look(reading.table, reading.flaws)
    values = asdict(seen)
    if as_json:
        answer(values, True)
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    words = {
        "short": f"records of fewer than {SHORT_WORDS} words",
        "long": f"records over {LONG_CHARACTERS:,} characters",
        "blank": "records without text",
        "with_controls": "records with control characters",
        "repeated_within": "records that repeat one of the same user",
        "repeated_across": "texts that several users hold",
        "users_with_at_least": "users with at least so many different records",
    }
    table = Table(show_header=False, title=Text(seen.source), title_justify="left")
    table.add_column()
    table.add_column(overflow="fold")
    for key, value in values.items():
        if key in ("source", "problems"):
            continue
        if isinstance(value, dict):
            value = ", ".join(f"{name}: {number:g}" for name, number in value.items())
        elif isinstance(value, tuple | list):
            value = ", ".join(f"{name} ({number})" for name, number in value)
        table.add_row(words.get(key, key.replace("_", " ")), Text(str(value)))
    console = Console()
    console.print(table)
    for problem in seen.problems:
        console.print(f"[yellow]![/yellow] {escape(str(problem))}", highlight=False)
    if not seen.problems:
        console.print("[green]no problems found[/green]")
