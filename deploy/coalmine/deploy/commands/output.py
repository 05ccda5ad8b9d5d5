"""How verbs answer: JSON on stdout for programs, rich text for people. Everything else goes to stderr."""

from __future__ import annotations

import json
import math
import sys
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]


def answer(values: dict[str, Any], as_json: bool, meaning: str = "") -> None:
    """Print values as strict JSON (infinite values as null), or one line each.

    Args:
        meaning: without which the numbers mean nothing (level, adjacency, unit, assurance), for people.
    """
    if as_json:
        sys.stdout.write(json.dumps(_strict(values), allow_nan=False) + "\n")
        return
    from rich.console import Console

    console = Console()
    for line in _lines(values):
        console.print(line, markup=False, highlight=True)
    if meaning:
        console.print(meaning, style="dim", markup=False, highlight=False)


def _lines(values: dict[str, Any], prefix: str = "") -> list[str]:
    lines = []
    for key, value in values.items():
        if isinstance(value, dict):
            lines += _lines(value, f"{prefix}{key}.")
        else:
            lines.append(f"{prefix}{key} = {value:.6g}" if isinstance(value, float) else f"{prefix}{key} = {value}")
    return lines


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strict(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
