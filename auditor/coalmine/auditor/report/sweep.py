"""A sweep for people: one figure, one table, one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from coalmine.auditor.attacks import ATTACKS
from coalmine.auditor.report import record
from coalmine.auditor.report.page import page, picture
from coalmine.auditor.report.pictures import write_figure
from coalmine.auditor.report.style import CLAIM, GRID, QUIET, canvas, look, title
from coalmine.auditor.report.summary import rows
from coalmine.auditor.report.wording import down, percent, qualifiers
from coalmine.auditor.report.write import write_json, write_text
from coalmine.auditor.sweep import Sweep, SweepPoint, Value
from coalmine.protocol.finding import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.console import RenderableType

FORMAT = "coalmine sweep 1"
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1b1f24", "#5b6470")
_MARKERS = "osD^vPX*"
_MOST_PANELS = 6


def figure(sweep: Sweep) -> Figure:
    """Epsilon over the first key, one panel for each value of the other keys (the first six).

    Solid: exact epsilon of each attack's strongest canary. Dotted: its Monte-Carlo bound. The claim is drawn thick.
    """
    x = sweep.keys[0]
    panels: dict[str, list[SweepPoint]] = {}
    for point in sweep.points:
        panels.setdefault(_rest(point, x), []).append(point)
    shown = dict(list(panels.items())[:_MOST_PANELS])
    with look():
        drawing, columns = canvas(max(6.4, 3.1 * len(shown)), 4.6, len(shown), shared=True)
        for axes, (name, points) in zip(columns, shown.items(), strict=True):
            _panel(axes, x, points)
            axes.set_title(name)
            axes.set_xlabel(x)
        columns[0].set_ylabel("ε")
        if _wide([point.audit.claim.eps_pld_upper for point in sweep.points]):
            columns[0].set_yscale("symlog", linthresh=0.1)
            columns[0].yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        else:
            columns[0].set_ylim(0, None)
        known = {str(line.get_label()): line for axes in columns for line in axes.get_legend_handles_labels()[0]}
        drawing.legend(list(known.values()), list(known), loc="outside lower center", ncols=min(5, len(known)))
        hidden = f" · {len(panels) - len(shown)} more panels in the table" if len(panels) > len(shown) else ""
        title(
            drawing,
            f"{sweep.name}: what attacks show, against what is promised",
            f"solid: exact for the modelled mechanism, strongest canary · dotted: certified from trials{hidden}",
            _qualifiers(sweep),
        )
    return drawing


def _panel(axes: Axes, key: str, points: list[SweepPoint]) -> None:
    values = [point.values[key] for point in points]
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    places: list[Any] = list(values) if numeric else list(range(len(values)))
    order = sorted(range(len(points)), key=lambda index: places[index])
    across = [places[index] for index in order]
    claims = [points[index].audit.claim.eps_pld_upper for index in order]
    axes.plot(across, claims, color=CLAIM, lw=2.4, label="claim (PLD, upper)")
    found = [{row.attack: row for row in rows(points[index].audit)} for index in order]
    for number, attack in enumerate(ATTACKS):
        here = [(place, audited[attack]) for place, audited in zip(across, found, strict=True) if attack in audited]
        if not here:
            continue
        where = [place for place, _ in here]
        exact = [row.exact.eps_lower for _, row in here]
        counted = [row.monte_carlo.eps_lower for _, row in here]
        colour, marker = _COLOURS[number], _MARKERS[number]
        axes.plot(where, exact, color=colour, marker=marker, ms=4.5, lw=1.4, label=attack)
        axes.plot(where, counted, color=colour, lw=1.0, ls=":")
    if not numeric:
        axes.set_xticks(across, [_said(values[index]) for index in order], rotation=20, ha="right")
    elif _wide(across):
        axes.set_xscale("log")
        axes.set_xticks(across, [f"{value:g}" for value in across], minor=False)
        axes.set_xticks([], minor=True)
    axes.grid(axis="y", color=GRID)
    axes.tick_params(colors=QUIET)


def _wide(values: list[Any]) -> bool:
    """Whether numbers ask for a logarithmic axis."""
    return bool(min(values) > 0 and max(values) / min(values) >= 8)


def table(sweep: Sweep) -> list[dict[str, str]]:
    """One row per point and attack, as text."""
    return [
        {
            **{key: _said(point.values[key]) for key in sweep.keys},
            "claim ε": f"{point.audit.claim.eps_pld_upper:.4f}",
            "attack": row.attack,
            "exact ε": down(row.exact.eps_lower),
            "MC ε ≥": down(row.monte_carlo.eps_lower),
            "VR ε ≥": down(row.variance_reduced.eps_lower),
            "of claim": percent(row.share),
            "verdict": row.verdict.value,
        }
        for point in sweep.points
        for row in rows(point.audit)
    ]


def to_rich(sweep: Sweep) -> RenderableType:
    """The table for a terminal."""
    from rich.table import Table
    from rich.text import Text

    found = table(sweep)
    contradicted = sum(row["verdict"] == Verdict.CONTRADICTED.value for row in found)
    shown = Table(
        title=Text(f"{sweep.name}: {len(sweep.points)} points", style="italic"),
        caption=Text(f"{_qualifiers(sweep)}\nclaims contradicted: {contradicted} of {len(found)} rows", style="dim"),
        title_justify="left",
        caption_justify="left",
        header_style="bold",
    )
    for name in found[0]:
        if name != "verdict":
            shown.add_column(_short(name), justify="left" if name == "attack" else "right", no_wrap=True)
    for row in found:
        style = "bold red" if row["verdict"] == Verdict.CONTRADICTED.value else ""
        shown.add_row(*(Text(value) for name, value in row.items() if name != "verdict"), style=style)
    return shown


def to_json(sweep: Sweep) -> dict[str, Any]:
    """Strict JSON; each point holds its findings as a study of its own would."""
    return {
        "format": FORMAT,
        "name": sweep.name,
        "keys": list(sweep.keys),
        "points": [{"values": point.values, "findings": record.to_json(point.audit)} for point in sweep.points],
        "seconds": sweep.seconds,
    }


def publish(sweep: Sweep, folder: Path) -> Path:
    """Write ``sweep.json``, ``figures/sweep.*`` and ``report.html``; ``sweep.json`` last.

    Returns:
        The path of ``report.html``.

    Raises:
        StorageError: no space or no permission.
    """
    drawing = write_figure(figure(sweep), "sweep", folder)
    report = write_text(folder / "report.html", _page(sweep, drawing))
    write_json(folder / "sweep.json", to_json(sweep))
    return report


def _page(sweep: Sweep, drawing: str) -> str:
    return page(
        "sweep.html.j2",
        {
            "sweep": sweep,
            "rows": table(sweep),
            "qualifiers": _qualifiers(sweep),
            "figure": picture(drawing, "sweep", f"Epsilon of every attack over {', '.join(sweep.keys)}"),
        },
    )


def _qualifiers(sweep: Sweep) -> str:
    """Of all claims: where they differ, every wording."""
    told = [qualifiers(point.audit.claim).split(" · ") for point in sweep.points]
    return " · ".join(" or ".join(dict.fromkeys(wordings)) for wordings in zip(*told, strict=True))


def _rest(point: SweepPoint, key: str) -> str:
    return ", ".join(f"{_short(name)} = {_said(value)}" for name, value in point.values.items() if name != key)


def _short(key: str) -> str:
    return key.rpartition(".")[2]


def _said(value: Value) -> str:
    """Paths by their last part: a sweep over files is read by their names."""
    if isinstance(value, float):
        return f"{value:g}"
    return Path(value).name if isinstance(value, str) else "none" if value is None else str(value)
