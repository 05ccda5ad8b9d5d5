"""Bounds and accuracy side by side over what was swept, where the claim is the same at every point."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from coalmine.auditor.membership.report import privacy_figures
from coalmine.auditor.membership.report.cost_figures import label, number
from coalmine.auditor.membership.report.privacy_figures import COLOURS, FILTERED, MARKERS, formal, headline, said
from coalmine.auditor.membership.result import Arm, Audited, Subject
from coalmine.auditor.report.style import CLAIM, INK, QUIET, VARIANCE_REDUCED, canvas, look, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BOUNDS: tuple[tuple[Callable[[Subject], float | None], str], ...] = (
    (formal, "formal"),
    (headline, "heuristic: GDP reading"),
)
_MOST_UPRIGHT = 30
"""Letters of all ticks that fit below a panel."""


def epsilons(found: Audited) -> Figure | None:
    """What attacks show: over the swept values where all points share a claim, else as ``privacy_figures.epsilons``.

    ``None`` where no canary was tested.
    """
    claims = {audit.claim.eps_pld_upper for _, audit in found.points}
    tested = any(arm.subjects for _, audit in found.points for arm in audit.arms)
    return over_values(found) if tested and found.keys and len(claims) == 1 else privacy_figures.epsilons(found)


def over_values(found: Audited) -> Figure:
    """Formal bound, GDP reading and accuracy over the swept values; words keep the order of the file."""
    numeric = len(found.keys) == 1 and all(number(values[found.keys[0]]) for values, _ in found.points)
    points = [
        (float(str(values[found.keys[0]])) if numeric else float(place), label(values, found.keys), audit)
        for place, (values, audit) in enumerate(found.points)
    ]
    points.sort(key=lambda point: point[0])
    across = [(x, audit.arms) for x, _, audit in points]
    first = points[0][2]
    with look():
        figure, columns = canvas(11.4, 4.6, 3)
        for axes, (value, what) in zip(columns, _BOUNDS, strict=False):
            _bounds(axes, across, value, lines=numeric)
            if value is formal:
                _ceiling(axes, across)
            top = max(0.5, 1.08 * axes.get_ylim()[1])
            axes.set_ylim(-0.03 * top, top)
            _claim(axes, first.claim.eps_pld_upper)
            axes.set_title(what)
            axes.set_ylabel("ε ≥" if value is formal else "ε read")
        _accuracy(columns[2], across, lines=numeric)
        columns[2].axhline(first.accuracy_before, color=QUIET, ls=(0, (2, 2)), label="before training")
        for axes in columns:
            axes.set_xticks([x for x, _, _ in points], [name for _, name, _ in points])
            if not numeric and max(len(name) for _, name, _ in points) * len(points) > _MOST_UPRIGHT:
                axes.tick_params(axis="x", rotation=30)
                for tick in axes.get_xticklabels():
                    tick.set_horizontalalignment("right")
            axes.set_xlabel(", ".join(found.keys))
            axes.grid(axis="y")
            axes.margins(x=0.08)
        known = {str(one.get_label()): one for axes in columns for one in axes.get_legend_handles_labels()[0]}
        figure.legend(list(known.values()), list(known), loc="outside lower center", ncols=3)
        title(
            figure,
            f"{found.study}: what attacks show and what it costs",
            "filled: without filter · hollow: with filter · accuracy: mean and one deviation over models",
            *said([audit for _, _, audit in points]),
        )
    return figure


Across = list[tuple[float, tuple[Arm, ...]]]


def _bounds(axes: Axes, across: Across, value: Callable[[Subject], float | None], *, lines: bool) -> None:
    arms = list(dict.fromkeys(arm.name for _, found in across for arm in found))
    names = list(dict.fromkeys(one.name for _, found in across for arm in found for one in arm.subjects))
    for place, name in enumerate(names):
        for arm in arms:
            line = [
                (x, eps)
                for x, found in across
                for one in found
                if one.name == arm
                for subject in one.subjects
                if subject.name == name and (eps := value(subject)) is not None
            ]
            hollow = arm == FILTERED
            axes.plot(
                [x for x, _ in line],
                [eps for _, eps in line],
                color=COLOURS[place % len(COLOURS)],
                marker=MARKERS[place % len(MARKERS)],
                ls=_style(hollow, lines=lines),
                mfc="none" if hollow else COLOURS[place % len(COLOURS)],
                ms=6,
                lw=1.5,
                label=f"{name}, {arm}",
            )


def _style(hollow: bool, *, lines: bool) -> Any:
    """Values without an order are not joined."""
    if not lines:
        return ""
    return (0, (4, 2)) if hollow else "-"


def _ceiling(axes: Axes, across: Across) -> None:
    """The most that Clopper-Pearson with Bonferroni can show of so many models."""
    line = [
        (x, max(found))
        for x, arms in across
        if (
            found := [
                one.details["ceiling"]
                for arm in arms
                for subject in arm.subjects
                for one in subject.findings[0].evidence
                if one.method == "clopper_pearson_bonferroni"
            ]
        )
    ]
    if line:
        across_models, ceilings = [x for x, _ in line], [ceiling for _, ceiling in line]
        axes.plot(across_models, ceilings, color=QUIET, ls=":", lw=1.6, label="most that so many models can show")


def _claim(axes: Axes, eps: float) -> None:
    """A line where the axis reaches so far; else the number, so that small bounds can be read."""
    if eps <= axes.get_ylim()[1]:
        axes.axhline(eps, color=CLAIM, lw=2.2, label="claim (PLD, upper)")
    else:
        axes.text(0.98, 0.98, f"claim {eps:.2f}: above", transform=axes.transAxes, ha="right", va="top", color=CLAIM)


def _accuracy(axes: Axes, across: Across, *, lines: bool) -> None:
    for arm in dict.fromkeys(arm.name for _, found in across for arm in found):
        seen = [(x, one.accuracy, one.accuracy_std) for x, found in across for one in found if one.name == arm]
        hollow, colour = arm == FILTERED, VARIANCE_REDUCED if arm == FILTERED else INK
        axes.errorbar(
            [x for x, _, _ in seen],
            [y for _, y, _ in seen],
            yerr=[error for _, _, error in seen],
            color=colour,
            marker="D",
            ls=_style(hollow, lines=lines),
            mfc="none" if hollow else colour,
            capsize=3,
            label=f"accuracy {arm}",
        )
    axes.set_title("accuracy on public test samples")
