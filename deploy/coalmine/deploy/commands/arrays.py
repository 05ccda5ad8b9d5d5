"""`coalmine audit`: audits of what the user brings."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from coalmine.deploy.commands import one_run
from coalmine.deploy.commands.output import AsJson, answer

app = typer.Typer(
    no_args_is_help=True,
    help="Audits of what you bring or name: votes, synthetic data, canaries of a study, federated training.",
)


@app.command()
def arrays(
    case: Annotated[Path, typer.Argument(help="JSON or .npz: bank, pool, canary, aux, test, probe_positions, params.")],
    as_json: AsJson = False,
) -> None:
    """Greedy probes, score and exact epsilon (user level, add/remove; exact for the modelled round) of given arrays."""
    from coalmine.auditor.arrays import audit_arrays
    from coalmine.auditor.case import load_case

    answer(asdict(audit_arrays(load_case(case))), as_json)


app.command("one-run")(one_run.one_run)
