"""The command line. Verbs import what they need when they are called, so that help answers at once."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

import typer

from coalmine.deploy.commands import (
    arrays,
    bank,
    calc,
    canary_echo,
    data,
    demo,
    disclosures,
    doctor,
    init,
    models,
    report,
    run,
    selftest,
    synthesise,
    training,
)
from coalmine.protocol.errors import CoalmineError, StorageError

if TYPE_CHECKING:
    from typing_extensions import Buffer

app = typer.Typer(
    name="coalmine",
    help="Canaries for federated privacy: what does a system that claims differential privacy really give away?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command("demo")(demo.demo)
app.command("run")(run.run)
app.command("report")(report.report)
app.command("init")(init.init)
app.command("doctor")(doctor.doctor)
app.command("selftest")(selftest.selftest)
arrays.app.command("disclosures")(disclosures.disclosures)
arrays.app.command("canary-echo")(canary_echo.canary_echo)
app.command("synthesise")(synthesise.synthesise)
app.command("train")(training.train)
arrays.app.command("training")(training.audit_training)
app.add_typer(calc.app, name="calc")
app.add_typer(arrays.app, name="audit")
app.add_typer(data.app, name="data")
app.add_typer(bank.app, name="bank")
app.add_typer(models.app, name="models")


class _NoOutput(StorageError):
    """Standard output failed, and not some other file."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"standard output cannot be written: {cause}")


class _StandardOutput(io.FileIO):
    """Its failures carry their own name: a full disk elsewhere would look the same."""

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise _NoOutput(error.strerror or "unknown") from error


def main() -> None:
    """Entry point: a user's mistake ends with one message and code 2."""
    try:
        _open_output()
        try:
            app()
        finally:
            sys.stdout.flush()
    except _NoOutput as error:
        sys.stderr.write(f"coalmine: {error}\n")
        sys.stderr.flush()
        os._exit(error.exit_code)  # the interpreter's own flush at exit would fail once more
    except CoalmineError as error:
        sys.stderr.write(f"coalmine: {error}\n")
        sys.exit(error.exit_code)


def _open_output() -> None:
    if sys.stdout is None:  # closed before the program began: the next file that is opened would be written to instead
        raise _NoOutput("it is closed")
    opened = sys.__stdout__
    if opened is not None and sys.stdout is opened:
        raw = _StandardOutput(opened.fileno(), "w", closefd=False)
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(raw), opened.encoding, opened.errors, line_buffering=raw.isatty()
        )
