"""How every figure looks: colours that stay apart for colour-blind readers and in grey, one typeface, one grid.

Colours are those of Okabe and Ito (2008). Meaning never rests on colour alone: each estimator has its own marker too.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#1b1f24"
QUIET = "#5b6470"
GRID = "#e3e6ea"
PAPER = "#fefefe"
EXACT = "#0072b2"
VARIANCE_REDUCED = "#009e73"
MONTE_CARLO = "#d55e00"
LOSS = "#b9c3cf"
CLAIM = "#aa3377"

_THEMED = {
    INK: "ink",
    QUIET: "quiet",
    GRID: "grid",
    PAPER: "paper",
    LOSS: "loss",
    EXACT: "exact",
    VARIANCE_REDUCED: "vr",
    MONTE_CARLO: "mc",
    CLAIM: "claim",
}
"""Colours that a page replaces by its own, so that a figure follows a dark theme."""

_SETTINGS: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.5,
    "axes.labelcolor": QUIET,
    "axes.edgecolor": QUIET,
    "axes.facecolor": PAPER,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "svg.fonttype": "path",
    "svg.hashsalt": "coalmine",
}


@contextmanager
def look() -> Iterator[None]:
    """The style above, for figures that are made or saved within."""
    import matplotlib as mpl

    with mpl.rc_context(_SETTINGS):
        yield


def canvas(width: float, height: float, columns: int = 1, *, shared: bool = False) -> tuple[Figure, list[Axes]]:
    """An empty figure with one row of axes, their y axes shared or not; inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(1, columns, squeeze=False, sharey=shared)
    return figure, list(axes[0])


def title(figure: Figure, headline: str, *lines: str) -> None:
    """What a figure shows, and under which adjacency, unit and assurance."""
    height = figure.get_size_inches()[1]
    used = 0.40 + 0.19 * len(lines)
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - used / height))  # type: ignore[union-attr, call-arg]
    plain: Any = {"ha": "left", "va": "top", "parse_math": False}  # a name may hold a dollar
    figure.text(0.012, 1 - 0.10 / height, headline, fontsize=12.5, fontweight="bold", **plain)
    for row, line in enumerate(lines):
        figure.text(0.012, 1 - (0.36 + 0.19 * row) / height, line, fontsize=8.8, color=QUIET, **plain)


def svg(figure: Figure) -> str:
    """The figure as an SVG document; the same figure gives the same text."""
    buffer = io.StringIO()
    with look():
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def png(figure: Figure, dpi: int = 160) -> bytes:
    """The figure as a PNG image."""
    buffer = io.BytesIO()
    with look():
        figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    return buffer.getvalue()


def inline(document: str, key: str, label: str) -> str:
    """An SVG document for the inside of an HTML page: no prologue, unique ids, colours left to the page.

    Args:
        key: prefix that no other figure on the page uses.
        label: read out where the figure cannot be seen; plain text without quotes or markup.
    """
    body = document[document.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{key}-", body)
    for colour, name in _THEMED.items():
        body = body.replace(colour, f"var(--{name}, {colour})")
    body = re.sub(
        r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', rf'<svg viewBox="\1" role="img" aria-label="{label}">', body, count=1
    )
    return body.replace("xlink:href", "href")
