"""`coalmine bank`: banks as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coalmine.deploy.commands.output import AsJson, answer

app = typer.Typer(no_args_is_help=True, help="Candidate banks as files.")


@app.callback()
def bank() -> None:
    """Candidate banks as files."""


@app.command()
def build(
    study: Annotated[Path, typer.Argument(help="Study file: its data (labels), generator, encoder and bank size.")],
    to: Annotated[Path, typer.Option(help="Parquet file to write.")] = Path("bank.parquet"),
    overrides: Annotated[list[str] | None, typer.Option("--set", help="Override a key of the study.")] = None,
    as_json: AsJson = False,
) -> None:
    """Generate a study's bank from its labels, and write it with its commitment's digest."""
    from rich.console import Console

    from coalmine.clients.encoder.sentence import SentenceEncoder
    from coalmine.deploy.parts import generator
    from coalmine.deploy.prepare import build_bank, people
    from coalmine.deploy.progress import Stages
    from coalmine.deploy.study_file import read_study
    from coalmine.deploy.workshop import cache_folder
    from coalmine.protocol.bank import commit
    from coalmine.server.bank_file import write_bank

    chosen = read_study(study, overrides or ())
    encoder = SentenceEncoder(chosen.encoder.model, precision=chosen.encoder.precision)
    crowd = people(chosen)
    with Stages(Console(stderr=True)) as stages, stages.stage("bank", chosen.bank.size, "texts") as advance:
        made, pool = build_bank(chosen, generator(chosen, cache_folder(chosen)), encoder, crowd, advance)
    write_bank(made, to)
    tally = pool.tally
    answer(
        {
            "file": str(to),
            "size": len(made),
            "digest": commit(made).digest,
            "encoder": made.encoder_id,
            "generator": pool.generator_id,
            "asked": tally.asked,
            "blank": tally.blank,
            "repeated": tally.repeated,
            "refused": tally.refused,
        },
        as_json,
    )
