"""Claim, exact epsilon and formal bound of every row, a panel with an axis of its own for every setting."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from coalmine.auditor.joined.report.wording import heading, subject
from coalmine.auditor.joined.row import Row, Setting, by_setting
from coalmine.auditor.report.style import CLAIM, EXACT, MONTE_CARLO, QUIET, look, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_ROWS = 80
"""What a figure can show and still be read; the table has all."""
_LETTERS = 72
"""Of a line of a label; it has two at most."""
_ROW, _PANEL = 0.27, 0.95
"""Inches of a row, and of a panel besides its rows."""


def claims_and_bounds(rows: Sequence[Row]) -> Figure:
    """The first ``MOST_ROWS`` rows. What was not measured is not drawn, and said where nothing proven is there."""
    from matplotlib.figure import Figure

    groups = by_setting(rows[:MOST_ROWS])
    sizes = [max(1.6, len(found)) * _ROW + _PANEL for found in groups.values()]
    with look():
        figure = Figure(figsize=(10.4, sum(sizes) + 1.3), layout="constrained")
        panels = figure.subplots(len(groups), 1, squeeze=False, height_ratios=sizes)[:, 0]
        for axes, (setting, found) in zip(panels, groups.items(), strict=True):
            _panel(axes, setting, found)
        known = {str(one.get_label()): one for axes in panels for one in axes.get_legend_handles_labels()[0]}
        figure.legend(list(known.values()), list(known), loc="outside lower center", ncols=max(1, len(known)))
        hidden = f" · {len(rows) - MOST_ROWS} more rows in the table" if len(rows) > MOST_ROWS else ""
        title(
            figure,
            "What is claimed, and what attacks show",
            "each panel is about another epsilon (unit, neighbours, δ) with its own axis: compare within a panel",
            f"heuristic readings are left out; what was not measured is not drawn{hidden}",
        )
    return figure


def _panel(axes: Axes, setting: Setting, rows: Sequence[Row]) -> None:
    claims = [(row.claim.eps, y) for y, row in enumerate(rows) if row.claim is not None and _finite(row.claim.eps)]
    exact = [(row.exact.eps, y) for y, row in enumerate(rows) if row.exact is not None and _finite(row.exact.eps)]
    formal = [(row.formal.eps, y) for y, row in enumerate(rows) if row.formal is not None and _finite(row.formal.eps)]
    for points, colour, marker, label in (
        (claims, CLAIM, "|", "claim (upper)"),
        (exact, EXACT, "o", "exact, for the modelled mechanism"),
        (formal, MONTE_CARLO, "s", "formal lower bound, each at its own level"),
    ):
        if not points:  # an empty line that is not clipped has no place, and the layout would fail
            continue
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            ls="",
            marker=marker,
            ms=13 if marker == "|" else 6.5,
            mew=2.6 if marker == "|" else 1.4,
            mfc="none" if marker == "s" else colour,
            color=colour,
            label=label,
            clip_on=False,
        )
    shown = [x for x, _ in (*claims, *exact, *formal)]
    positive = [x for x in shown if x > 0]
    if positive and max(positive) / min(positive) >= 100:
        axes.set_xscale("symlog", linthresh=1.0)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    right = 1.06 * max([*shown, 0.1])
    axes.set_xlim(0, right)
    for y, row in enumerate(rows):
        if row.exact is None and row.formal is None:
            axes.text(
                0.012, y, "nothing proven: not measured", transform=axes.get_yaxis_transform(), va="center", color=QUIET
            )
    axes.set_yticks(range(len(rows)), [_name(row) for row in rows])
    for tick, row in zip(axes.get_yticklabels(), rows, strict=True):
        tick.set_parse_math(False)  # a name may hold a dollar
        if row.contradicted:
            tick.set_color(CLAIM)
            tick.set_fontweight("bold")
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_title(heading(setting))
    axes.set_xlabel("ε" if claims else "ε (nothing is claimed about it)")
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0, pad=9)


def _finite(eps: float) -> bool:
    return eps < float("inf")


def _name(row: Row) -> str:
    contradicted = " (contradicted)" if row.contradicted else ""
    return textwrap.fill(textwrap.shorten(f"{subject(row)}{contradicted}", 2 * _LETTERS), _LETTERS)
