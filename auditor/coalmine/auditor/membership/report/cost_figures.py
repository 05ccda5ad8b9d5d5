"""What the filter costs: accuracy, and whose samples go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from coalmine.auditor.membership.disparate import Share
from coalmine.auditor.membership.report.privacy_figures import COLOURS, FILTERED, MARKERS, MOST_PANELS
from coalmine.auditor.membership.result import Audited
from coalmine.auditor.report.style import EXACT, INK, LOSS, MONTE_CARLO, QUIET, VARIANCE_REDUCED, canvas, look, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ARMS = {"without filter": (MONTE_CARLO, "o"), FILTERED: (VARIANCE_REDUCED, "s")}


def accuracy(found: Audited) -> Figure:
    """With and without the filter, over the first swept key where there is one; bars of one deviation over models."""
    key = found.keys[0] if found.keys else None
    labels = [label(values, found.keys) for values, _ in found.points]
    numeric = key is not None and len(found.keys) == 1 and all(number(values[key]) for values, _ in found.points)
    across = [float(str(values[key])) if numeric and key else float(n) for n, (values, _) in enumerate(found.points)]
    order = sorted(range(len(across)), key=lambda n: across[n])
    apart = 0.0 if numeric else 0.06
    with look():
        figure, (axes,) = canvas(7.6, 3.8)
        for (name, (colour, marker)), aside in zip(_ARMS.items(), (-apart, apart), strict=True):
            seen = [
                (across[n] + aside, arm.accuracy, arm.accuracy_std)
                for n in order
                for arm in found.points[n][1].arms
                if arm.name == name
            ]
            axes.errorbar(
                [x for x, _, _ in seen],
                [y for _, y, _ in seen],
                yerr=[e for _, _, e in seen],
                color=colour,
                marker=marker,
                mfc="none" if name == FILTERED else colour,
                capsize=3,
                lw=1.5,
                label=name,
            )
        before = [found.points[n][1].accuracy_before for n in order]
        axes.plot([across[n] for n in order], before, color=QUIET, ls="--", marker="D", ms=5, label="before training")
        axes.set_xticks([across[n] for n in order], [labels[n] for n in order])
        axes.margins(x=0.08, y=0.15)
        if len(across) == 1:
            axes.set_xlim(across[0] - 0.5, across[0] + 0.5)
        axes.set_xlabel(", ".join(found.keys))
        axes.set_ylabel("accuracy on public test samples")
        axes.grid(axis="y")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        bars = "mean over models without a canary · bars: one deviation between models · the axis need not begin at 0"
        title(figure, "What the filter costs in accuracy", bars)
    return figure


def lost(found: Audited) -> Figure | None:
    """Dropped share of each class and subgroup; ``None`` where nothing is filtered."""
    panels = [
        (label(values, found.keys), arm.dropped) for values, audit in found.points for arm in audit.arms if arm.dropped
    ]
    if not panels:
        return None
    shown = panels[:MOST_PANELS]
    rows = max(len(taken) for _, taken in shown)
    with look():
        figure, columns = canvas(max(7.2, 3.6 * len(shown)), 1.6 + 0.27 * rows, len(shown), shared=True)
        for axes, (name, taken) in zip(columns, shown, strict=True):
            _bars(axes, taken)
            axes.set_title(name)
        title(
            figure,
            "Whose samples the filter drops",
            "mean share over models without a canary · seen by the auditor, outside the claim",
        )
    return figure


def disparate(found: Audited) -> Figure | None:
    """Dropped share and accuracy of each subgroup; ``None`` where that was not asked."""
    audits = [audit for _, audit in found.points if audit.disparate]
    if not audits:
        return None
    seen = audits[0].disparate
    names = [one.of for one in seen[0].impact.dropped]
    across = list(range(len(seen)))
    ticks = ["own data" if one.minority is None else f"{100 * one.minority:g} %" for one in seen]
    with look():
        figure, (left, right) = canvas(10.0, 4.2, 2)
        for number, name in enumerate(names):
            taken = [one.impact.dropped[number] for one in seen]
            _interval(left, across, taken, COLOURS[number], MARKERS[number], "-", name)
            after = [one.impact.accuracy[number] for one in seen]
            before = [one.impact.accuracy_unfiltered[number] for one in seen]
            _interval(right, across, before, COLOURS[number], MARKERS[number], "-", f"{name}, without filter")
            _interval(right, across, after, COLOURS[number], MARKERS[number], ":", f"{name}, with filter")
        for axes, what in ((left, "share of its training samples dropped"), (right, "accuracy on its test samples")):
            axes.set_xticks(across, ticks)
            axes.set_xlabel("share of the minority (group 1)")
            axes.set_title(what)
            axes.grid(axis="y")
            axes.margins(x=0.15)
            axes.set_ylim(bottom=0)
            axes.legend(loc="best")
        title(
            figure,
            "Who pays for the filter?",
            f"mean over {seen[0].models} models, 95 % interval over models (heuristic: they share their data)",
        )
    return figure


def _interval(
    axes: Axes, across: Sequence[int], shares: Sequence[Share], colour: str, marker: str, line: str, label: str
) -> None:
    means = [one.mean for one in shares]
    ends = [[one.mean - one.low for one in shares], [one.high - one.mean for one in shares]]
    hollow = "none" if line == ":" else colour
    axes.errorbar(across, means, yerr=ends, color=colour, marker=marker, mfc=hollow, ls=line, capsize=3, label=label)


def _bars(axes: Axes, taken: Sequence[Share]) -> None:
    means = [one.mean for one in taken]
    colours = [EXACT if one.of.startswith("class") else MONTE_CARLO for one in taken]
    axes.barh(range(len(taken)), means, color=colours, height=0.62, lw=0)
    for place, one in enumerate(taken):
        axes.text(one.mean, place, f" {100 * one.mean:.1f} % of {one.samples}", va="center", fontsize=8.5, color=INK)
    axes.set_yticks(range(len(taken)), [one.of for one in taken])
    axes.set_ylim(len(taken) - 0.5, -0.5)
    axes.set_xlim(0, 1.35 * max(0.01, *means))
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.spines["left"].set_color(LOSS)
    axes.tick_params(axis="y", length=0)


def label(values: Mapping[str, object], keys: Sequence[str]) -> str:
    """A point by its values."""
    if len(keys) == 1:
        return str(values[keys[0]])
    return ", ".join(f"{key.rpartition('.')[2]} = {value}" for key, value in values.items())


def number(value: object) -> bool:
    """Whether a swept value is a place on an axis."""
    return isinstance(value, int | float) and not isinstance(value, bool)
