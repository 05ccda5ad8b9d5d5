"""Everything that joined findings leave in their folder, and what a terminal shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coalmine.auditor.joined.records import Read
from coalmine.auditor.joined.report import wording
from coalmine.auditor.joined.report.figure import claims_and_bounds
from coalmine.auditor.joined.row import NOT_MEASURED, Bound, Row, by_setting
from coalmine.auditor.report.page import page, picture
from coalmine.auditor.report.pictures import write_figure
from coalmine.auditor.report.record import strict
from coalmine.auditor.report.write import write_json, write_text
from coalmine.protocol.errors import StudyError

if TYPE_CHECKING:
    from rich.console import RenderableType

FORMAT = "coalmine joined 1"


def publish(records: Sequence[Read], folder: Path) -> Path:
    """Write ``figures/joined.*``, ``joined.html`` and, last, ``joined.json``; the folder is made where it is missing.

    Returns:
        The path of ``joined.html``.

    Raises:
        StudyError: records without a row. StorageError: no space or no permission.
    """
    rows = all_rows(records)
    if not rows:
        raise StudyError("no record bounds an epsilon", where="folders", remedy="name runs that were attacked")
    drawing = write_figure(claims_and_bounds(rows), "joined", folder)
    report = write_text(folder / "joined.html", render(records, drawing))
    write_json(folder / "joined.json", to_json(records))
    return report


def all_rows(records: Sequence[Read]) -> tuple[Row, ...]:
    """In the order of the records."""
    return tuple(row for one in records for row in one.rows)


def notes(records: Sequence[Read]) -> tuple[str, ...]:
    """What has no row."""
    return tuple(note for one in records for note in one.notes)


def render(records: Sequence[Read], drawing: str) -> str:
    """The page.

    Args:
        drawing: the SVG document of the figure.
    """
    rows = all_rows(records)
    context = {
        "records": records,
        "groups": by_setting(rows),
        "answer": wording.answer(rows, len(records)),
        "alarm": any(row.contradicted for row in rows),
        "notes": notes(records),
        "how_to_read": wording.HOW_TO_READ,
        "heading": wording.heading,
        "claimed": wording.claimed,
        "source": wording.source,
        "bound": wording.bound,
        "level": wording.level,
        "exact_level": wording.exact_level,
        "tight": wording.tight,
        "not_measured": NOT_MEASURED,
        "figure": picture(drawing, "joined", "Claim, exact epsilon and formal bound of every row"),
    }
    return page("joined.html.j2", context, package="coalmine.auditor.joined")


def to_json(records: Sequence[Read]) -> dict[str, Any]:
    """Strict JSON, rows by setting. ``null`` was not measured; infinities stand under ``not_finite``."""
    settings = [
        {"setting": asdict(setting), "rows": [_row(row) for row in rows]}
        for setting, rows in by_setting(all_rows(records)).items()
    ]
    read = [{"folder": one.folder, "file": one.file, "format": one.format, "rows": len(one.rows)} for one in records]
    return {"format": FORMAT, **strict({"settings": settings, "records": read, "notes": list(notes(records))})}


def to_rich(records: Sequence[Read]) -> RenderableType:
    """A table for each setting, fit for 80 columns."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    rows = all_rows(records)
    parts: list[RenderableType] = []
    for setting, found in by_setting(rows).items():
        title = Text(wording.heading(setting), "bold")
        table = Table(title=title, title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, show_edge=False)
        table.add_column("study · mechanism · attack", overflow="fold")
        for name in ("claim ≤", "exact", "formal ≥", "heuristic", "tightness"):
            table.add_column(name, justify="right", no_wrap=True)
        for row in found:
            numbers = [wording.bound(one) for one in (row.exact, row.formal, row.heuristic)]
            cells = (wording.claimed(row.claim), *numbers, wording.tight(row.tightness))
            table.add_row(Text(wording.subject(row)), *cells, style="bold red" if row.contradicted else "")
        parts += [table, ""]
    said = (Text(line) for line in wording.answer(rows, len(records)))
    return Group(*parts, *said, *(Text(note, "dim") for note in notes(records)))


def _row(row: Row) -> dict[str, Any]:
    told = {key: value for key, value in asdict(row).items() if key != "setting"}
    tightness = row.tightness
    for key, found in (("exact", row.exact), ("formal", row.formal), ("heuristic", row.heuristic)):
        told[key] = _bound(found)
    return {**told, "tightness": None if tightness is None else asdict(tightness)}


def _bound(found: Bound | None) -> dict[str, Any] | None:
    return None if found is None else {**asdict(found), "level_of_choice": found.level_of_choice}
