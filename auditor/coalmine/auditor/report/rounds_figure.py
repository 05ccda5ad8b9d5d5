"""Privacy and utility over rounds, as one figure: what was promised and shown above, what was gained below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coalmine.auditor.report.style import CLAIM, GRID, MONTE_CARLO, QUIET, VARIANCE_REDUCED, canvas, look, title
from coalmine.auditor.report.wording import percent, qualifiers
from coalmine.auditor.rounds.study import RoundsAudit, largest
from coalmine.auditor.utility.result import Repeated

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#5b6470", "#1b1f24")
_MARKERS = "osDvPX*h"


def privacy_and_utility(audit: RoundsAudit) -> Figure:
    """Epsilon after 1, ..., T rounds, and the utility of each round's synthetic output where it was measured."""
    labelled = bool(audit.utility) and audit.utility[0].accuracy is not None
    panels = 1 + bool(audit.utility) + labelled
    with look():
        figure, axes = canvas(max(6.8, 4.1 * panels), 5.4, panels)
        _privacy(axes[0], audit)
        if audit.utility:
            against = audit.utility[0].references
            _utility(
                axes[1],
                [(round.rounds, round.mauve) for round in audit.utility],
                "MAUVE of the synthetic output",
                [("real users against others", against.mauve_ceiling), ("the bank of round zero", against.mauve_floor)],
            )
        if labelled:
            known = [
                ("trained on other real users", against.accuracy_real),
                ("trained on the bank of round zero", against.accuracy_floor),
            ]
            majority = Repeated((against.majority,)) if against.majority is not None else None
            _utility(
                axes[2],
                [(round.rounds, round.accuracy) for round in audit.utility if round.accuracy is not None],
                "accuracy on real users",
                [*known, ("majority class", majority)],
            )
        title(
            figure,
            f"{audit.study}: privacy and utility over rounds",
            "lines: exact for the modelled mechanism, strongest canary, conditional on the banks",
            f"dotted: certified from {audit.trials:,} trials a side, {percent(1 - audit.alpha)} for each point alone",
            qualifiers(audit.claims[-1]),
        )
    return figure


def _privacy(axes: Axes, audit: RoundsAudit) -> None:
    rounds = [claim.rounds for claim in audit.claims]
    axes.plot(rounds, [claim.eps_pld_upper for claim in audit.claims], color=CLAIM, lw=2.2, label="claim (PLD, upper)")
    axes.plot(
        rounds, [claim.eps_prv for claim in audit.claims], color=CLAIM, lw=0.9, ls=(0, (4, 3)), label="claim (PRV)"
    )
    for number, (attack, paths) in enumerate(audit.paths.items()):
        colour, marker = _COLOURS[number % len(_COLOURS)], _MARKERS[number % len(_MARKERS)]
        exact = [largest(paths, after, "exact") for after in rounds]
        counted = [largest(paths, after, "monte_carlo") for after in rounds]
        axes.plot(rounds, exact, color=colour, marker=marker, ms=4.8, lw=1.5, label=attack)
        axes.plot(rounds, counted, color=colour, lw=1.1, ls=":")
        if attack in audit.replicas:
            proved = [one.eps_lower for one in audit.replicas[attack]]
            axes.plot(rounds, proved, "_", color=colour, ms=13, mew=2.2, label=f"{attack}, replicas (formal)")
    axes.set_title("ε after so many rounds")
    axes.set_ylim(0, None)
    _rounds(axes, rounds, 2)


def _utility(
    axes: Axes, measured: list[tuple[int, Repeated]], name: str, references: list[tuple[str, Repeated | None]]
) -> None:
    rounds = [number for number, _ in measured]
    low, high = rounds[0] - 0.3, rounds[-1] + 0.3
    for (label, value), style in zip(references, ((0, ()), (0, (4, 3)), (0, (1, 2))), strict=False):
        if value is None:
            continue
        axes.plot([low, high], [value.mean] * 2, color=QUIET, lw=1.2, ls=style, label=label)
        axes.fill_between(
            [low, high], value.mean - value.spread, value.mean + value.spread, color=QUIET, alpha=0.12, lw=0
        )
    colour = VARIANCE_REDUCED if "MAUVE" in name else MONTE_CARLO
    axes.errorbar(
        rounds,
        [value.mean for _, value in measured],
        yerr=[value.spread for _, value in measured],
        fmt="o-",
        color=colour,
        ms=5,
        capsize=3,
        label="synthetic (mean and spread over seeds)",
    )
    axes.set_title(name)
    axes.set_xlim(low, high)
    axes.set_ylim(0, 1.02)
    _rounds(axes, rounds)


def _rounds(axes: Axes, rounds: list[int], columns: int = 1) -> None:
    axes.set_xticks(rounds)
    axes.set_xlabel("round")
    axes.grid(axis="y", color=GRID)
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(-0.04, -0.14),
        ncols=columns,
        fontsize=8.2,
        columnspacing=1.0,
        handlelength=1.7,
        borderaxespad=0.0,
    )
