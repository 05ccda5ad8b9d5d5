"""How long the command line takes to answer."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.measurement import Measurement, seconds

_RUN = "from coalmine.deploy.cli import main; main()"


def _call(*arguments: str) -> float:
    return seconds(lambda: subprocess.run([sys.executable, "-c", _RUN, *arguments], check=True, capture_output=True))


def measure() -> list[Measurement]:
    """Help, and a calculator without torch."""
    return [
        Measurement("coalmine --help", _call("--help"), "s", "at most 0.6"),
        Measurement(
            "coalmine calc clopper-pearson",
            _call("calc", "clopper-pearson", "--x", "3", "--n", "9", "--gamma", "0.05", "--json"),
            "s",
            "at most 1.5",
        ),
    ]
