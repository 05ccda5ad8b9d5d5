"""A one-run audit as one figure: what each reading shows against the claim, and the scores that it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coalmine.auditor.one_run_audit import OneRunAudit, OneRunStudy
from coalmine.auditor.report.style import CLAIM, EXACT, MONTE_CARLO, PAPER, QUIET, canvas, look, title
from coalmine.auditor.report.wording import down, percent, qualifiers
from coalmine.protocol.finding import Evidence
from coalmine.protocol.privacy import Assurance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHADE = {Assurance.FORMAL: MONTE_CARLO, Assurance.HEURISTIC: QUIET}


def readings(found: OneRunStudy) -> Figure:
    """Left: every reading as a bar, the claim as a line. Right: scores of included and of excluded canaries."""
    with look():
        figure, (left, right) = canvas(9.6, 4.4, 2)
        _bars(left, found.audit)
        _scores(right, found.audit)
        title(
            figure,
            f"{found.study}: {found.audit.guesses.canaries} canaries in one run",
            f"orange: formal, {percent(1 - found.audit.level)} for each statement alone · grey: heuristic, no proof",
            qualifiers(found.audit.claim),
        )
    return figure


def _bars(axes: Axes, audit: OneRunAudit) -> None:
    names = [f"{one.method.removeprefix('one-run/')}\n({one.assurance})" for one in audit.evidence]
    limit = max([1e-3, *(one.eps_lower for one in audit.evidence)])
    if np.isfinite(audit.claim.eps_pld_upper):
        limit = max(limit, audit.claim.eps_pld_upper)
        axes.axvline(audit.claim.eps_pld_upper, color=CLAIM, lw=2.4, label=f"claim {audit.claim.eps_pld_upper:.3f}")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.19))
    for place, one in enumerate(audit.evidence):
        axes.barh(place, one.eps_lower, height=0.55, color=_SHADE[one.assurance], hatch=_hatch(one), ec=PAPER)
        axes.text(one.eps_lower + 0.02 * limit, place, down(one.eps_lower), va="center", fontsize=9)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.18 * limit)
    axes.grid(axis="x")
    axes.set_title("ε that each reading shows, participation included")


def _hatch(one: Evidence) -> str:
    """What is heuristic is told apart without colour too."""
    return "" if one.assurance is Assurance.FORMAL else "///"


def _scores(axes: Axes, audit: OneRunAudit) -> None:
    inside, outside = np.array(audit.inside), np.array(audit.outside)
    both = np.concatenate([inside, outside])
    for scores, colour, style, name in ((outside, QUIET, "--", "excluded"), (inside, EXACT, "-", "included")):
        if len(scores) < 2 or scores.std() == 0:
            continue  # no shape to draw, and no Gaussian was fitted
        across = np.linspace(both.min(), both.max(), 200)
        mean, spread = scores.mean(), scores.std(ddof=1)
        fitted = np.exp(-(((across - mean) / spread) ** 2) / 2) / (spread * np.sqrt(2 * np.pi))
        edges = np.linspace(both.min(), both.max(), max(8, round(2 * len(both) ** 0.5))).tolist()
        axes.hist(scores, edges, density=True, histtype="stepfilled", color=colour, alpha=0.3, lw=0)
        axes.plot(across, fitted, color=colour, ls=style, lw=1.6, label=f"{len(scores)} {name}, Gaussian fit")
    axes.set_title("scores of the canaries")
    axes.set_xlabel("deviations from an excluded canary’s expected score")
    axes.set_yticks([])
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.19), ncols=2)
