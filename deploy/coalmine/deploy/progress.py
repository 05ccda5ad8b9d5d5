"""Progress on the terminal's error stream: one bar a stage, and how long each stage took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from coalmine.protocol.ports import Advance


class _Rate(TextColumn):
    """Units per second."""

    def render(self, task: object) -> Text:
        speed = getattr(task, "speed", None)
        unit = getattr(task, "fields", {}).get("unit", "")
        return Text(f"{speed:,.0f} {unit}/s" if speed and unit else "", style="progress.data.speed")


class Stages:
    """Shows stages one after the other; without a terminal one line a stage.

    Attributes:
        seconds: wall-clock seconds by stage, in order.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        """One stage; the callback advances its bar by so many units."""
        started = time.perf_counter()
        columns = (
            SpinnerColumn(finished_text="[green]✓[/green]"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn() if total else TextColumn(""),
            _Rate(""),
            TimeElapsedColumn(),
            TimeRemainingColumn(compact=True) if total else TextColumn(""),
        )
        with Progress(*columns, console=self._console, disable=not self._console.is_terminal) as bars:
            task = bars.add_task(name, total=total, unit=unit)
            yield lambda done: bars.advance(task, done)
            bars.update(task, total=total or 1, completed=total or 1)
        spent = time.perf_counter() - started
        self.seconds[name] = self.seconds.get(name, 0.0) + spent
        if not self._console.is_terminal:
            self._console.print(f"{name}: {spent:.1f} s", highlight=False)
