"""Progress on the terminal's error stream: one bar a stage, and how long each stage took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from coalmine.protocol.ports import Advance

SECONDS_BETWEEN_LINES = 30.0


class Stages:
    """Shows stages as they run; a stage inside another is shown while it lasts.

    Without a terminal it writes a line for each finished stage, and now and then how far a long one has come.

    Attributes:
        seconds: wall-clock seconds by outermost stage, in order.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = Progress(
            SpinnerColumn(finished_text="[green]✓[/green]"),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            _Counted(),
            _Rate(),
            TimeElapsedColumn(),
            _TimeLeft(compact=True),
            console=console,
            disable=not console.is_terminal,
        )
        self._depth = 0
        self.seconds: dict[str, float] = {}

    def __enter__(self) -> Stages:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    @contextmanager
    def stage(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        """One stage; the callback advances its bar by so many units."""
        started = told = time.perf_counter()
        task = self._bars.add_task(("  " * self._depth) + name, total=total, unit=unit)
        self._depth += 1
        reached = 0

        def advance(done: int) -> None:
            nonlocal reached, told
            self._bars.advance(task, done)
            reached += done
            if total and not self._console.is_terminal and time.perf_counter() - told >= SECONDS_BETWEEN_LINES:
                told = time.perf_counter()
                self._console.print(f"{name}: {reached:,} of {total:,} {unit}", markup=False, highlight=False)

        try:
            yield advance
        finally:
            self._depth -= 1
        if self._depth:
            self._bars.remove_task(task)
            return
        self._bars.update(task, total=total or 1, completed=total or 1)
        spent = time.perf_counter() - started
        self.seconds[name] = self.seconds.get(name, 0.0) + spent
        if not self._console.is_terminal:
            self._console.print(f"{name}: {spent:.1f} s", markup=False, highlight=False)


class _Counted(MofNCompleteColumn):
    def render(self, task: Task) -> Text:
        return super().render(task) if task.fields["unit"] and task.total else Text("")


class _Rate(ProgressColumn):
    """Units per second, over the whole stage once it is finished."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        unit = task.fields["unit"]
        return Text(f"{speed:,.1f} {unit}/s" if speed and unit else "", style="progress.data.speed")


class _TimeLeft(TimeRemainingColumn):
    def render(self, task: Task) -> Text:
        return super().render(task) if task.fields["unit"] and task.total and not task.finished else Text("")
