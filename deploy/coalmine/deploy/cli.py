"""The command line. Verbs import what they need when they are called, so that help answers at once."""

from __future__ import annotations

import errno
import os
import sys

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
from coalmine.protocol.errors import CoalmineError

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


_NO_OUTPUT = (errno.EBADF, errno.EPIPE, errno.ENOSPC)


def main() -> None:
    """Entry point: a user's mistake ends with one message and code 2."""
    try:
        app()
    except CoalmineError as error:
        sys.stderr.write(f"coalmine: {error}\n")
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno not in _NO_OUTPUT:
            raise
        sys.stderr.write(f"coalmine: standard output cannot be written: {error.strerror}\n")
        os._exit(2)  # the interpreter's own flush at exit would fail once more
