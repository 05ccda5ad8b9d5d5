"""`coalmine report`: findings of several runs in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coalmine.deploy.commands.output import AsJson


def report(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders of finished runs, e.g. runs/demo.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="Folder for joined.html, joined.json and the figure.")],
    as_json: AsJson = False,
) -> None:
    """Join finished runs: claims, exact, formal and heuristic epsilons of every attack, and the verdicts, in one page.

    Reads what `coalmine run`, `train`, `audit training`, `audit one-run` and `audit disclosures --out` leave. Rows of
    different unit, adjacency or delta are kept apart; what was not measured is missing, not 0.
    """
    import json
    import sys

    from rich.console import Console

    from coalmine.auditor.joined.records import read_folders
    from coalmine.auditor.joined.report.publish import publish, to_json, to_rich
    from coalmine.deploy.studio import writable

    records = read_folders(folders)
    written = publish(records, writable(out))
    if as_json:
        sys.stdout.write(json.dumps(to_json(records), allow_nan=False, ensure_ascii=False) + "\n")
    else:
        Console().print(to_rich(records))
    Console(stderr=True).print(f"report: {written}", markup=False, highlight=False, soft_wrap=True)
