"""The page and the figures of a training audit."""

from __future__ import annotations

from pathlib import Path

from coalmine.auditor.membership.report import cost_figures, privacy_figures, sweep_figure
from coalmine.auditor.membership.report.page import render
from coalmine.auditor.membership.result import Audited
from coalmine.auditor.report.pictures import write_figure
from coalmine.auditor.report.write import write_text

FIGURES = {
    "epsilons": sweep_figure.epsilons,
    "drops": privacy_figures.drops,
    "label-only": privacy_figures.label_only,
    "accuracy": cost_figures.accuracy,
    "lost": cost_figures.lost,
    "disparate": cost_figures.disparate,
}


def publish(found: Audited, folder: Path) -> Path:
    """Write ``figures/`` and ``report.html`` into an existing folder; figures without numbers are left out.

    Returns:
        The path of ``report.html``.

    Raises:
        StorageError: no space or no permission.
    """
    figures = {name: draw(found) for name, draw in FIGURES.items()}
    drawings = {name: write_figure(one, name, folder) for name, one in figures.items() if one is not None}
    return write_text(folder / "report.html", render(found, drawings))
