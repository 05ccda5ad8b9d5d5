"""The figures of a disclosure audit. Each takes results and gives a matplotlib figure; nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coalmine.auditor.disclosure.report.rows import rows
from coalmine.auditor.disclosure.report.table import qualifiers
from coalmine.auditor.disclosure.result import DisclosureAudit
from coalmine.auditor.report.style import CLAIM, EXACT, GRID, INK, LOSS, QUIET, canvas, look, title
from coalmine.auditor.report.wording import brief, fixed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = (EXACT, "#d55e00", "#009e73", CLAIM, "#e69f00", QUIET)
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.3)), (0, (5, 1.5, 1, 1.5)))


def counts(audit: DisclosureAudit) -> Figure:
    """What was counted in train and held out, class by class, and where chance would put the border."""
    found = [row for row in rows(audit) if row.total and row.train is not None]
    with look():
        figure, (axes,) = canvas(8.4, 1.75 + 0.62 * max(1, len(found)))
        for position, row in enumerate(found):
            assert row.total
            assert row.train is not None
            share = row.train / row.total
            axes.barh(position, share, height=0.55, color=EXACT, lw=0)
            axes.barh(position, 1 - share, left=share, height=0.55, color=LOSS, lw=0)
            axes.text(1.02, position, f"{row.train:,} of {row.total:,} {row.counted}", va="center", fontsize=8.8)
        axes.axvline(audit.p, color=INK, lw=1.4, ls=(0, (4, 3)))
        axes.text(audit.p + 0.012, -0.5, f"chance, {brief(audit.p)}", va="bottom", fontsize=8.8, color=QUIET)
        axes.set_yticks(range(len(found)), [row.name for row in found])
        axes.set_ylim(max(1, len(found)) - 0.4, -0.85)
        axes.set_xlim(0, 1.32)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0", "25 %", "50 %", "75 %", "100 %"])
        axes.spines["bottom"].set_bounds(0, 1)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        title(
            figure,
            "Whose features are in the synthetic output?",
            "blue: held by training users · grey: held out, so they needed no training data (phantoms)",
        )
    return figure


def roc(audit: DisclosureAudit) -> Figure:
    """Membership attacks by score: one curve per class."""
    with look():
        figure, (axes,) = canvas(6.2, 5.4)
        axes.plot([0, 1], [0, 1], color=GRID, lw=1.5)
        for index, one in enumerate(audit.classes):
            if one.tests.roc is not None:
                axes.plot(
                    one.tests.roc.fpr,
                    one.tests.roc.tpr,
                    color=_COLOURS[index % len(_COLOURS)],
                    ls=_DASHES[index % len(_DASHES)],
                    lw=1.8,
                    label=f"{one.name}, AUC {fixed(one.tests.roc.auc)} (p = {brief(one.tests.roc.p_value, 2)})",
                )
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="lower right")
        axes.set_aspect("equal")
        axes.set_xlim(-0.01, 1.01)
        axes.set_ylim(-0.01, 1.01)
        axes.grid()
        axes.set_xlabel("share of held-out users above the threshold (FPR)", loc="left")
        axes.set_ylabel("share of training users above it (TPR)", loc="bottom")
        title(figure, "Can scores tell who was in train?", qualifiers(audit).split(" · attacker")[0])
    return figure


FIGURES = {"counts": counts, "roc": roc}
