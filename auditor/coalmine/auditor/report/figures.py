"""The four figures of an audited round. Each takes results and gives a matplotlib figure; nothing is written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.report.style import (
    CLAIM,
    EXACT,
    GRID,
    INK,
    LOSS,
    MONTE_CARLO,
    PAPER,
    QUIET,
    VARIANCE_REDUCED,
    canvas,
    look,
    title,
)
from coalmine.auditor.report.summary import Row, featured, rows
from coalmine.auditor.report.wording import down, percent, qualifiers
from coalmine.auditor.result import CanaryAudit, RoundAudit
from coalmine.protocol.privacy import Assurance, Claim

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

_SHADE = {Assurance.EXACT: EXACT, Assurance.FORMAL: MONTE_CARLO, Assurance.HEURISTIC: QUIET}


def epsilons(audit: RoundAudit) -> Figure:
    """Exact epsilon of every canary, and what trials certify, attack by attack, against the claim."""
    found = rows(audit)
    claim = audit.claim
    reach = max(claim.eps_prv, *(row.exact.eps_lower for row in found))
    with look():
        figure, (axes,) = canvas(8.4, 1.95 + 0.44 * len(found))
        for position, (row, attack) in enumerate(zip(found, audit.attacks, strict=True)):
            dots = [canary.exact.eps_lower for canary in attack.canaries]
            axes.barh(position, row.exact.eps_lower, height=0.6, color=EXACT, alpha=0.15, lw=0)
            axes.plot([row.exact.eps_lower] * 2, [position - 0.3, position + 0.3], color=EXACT, lw=2.6)
            axes.plot(dots, [position - 0.13] * len(dots), "o", ms=4.4, mfc=PAPER, mec=EXACT, mew=1.2, zorder=4)
            for evidence, marker, colour in (
                (row.variance_reduced, "D", VARIANCE_REDUCED),
                (row.monte_carlo, "^", MONTE_CARLO),
            ):
                axes.plot(
                    evidence.eps_lower, position + 0.14, marker, ms=6.4, color=colour, mec=PAPER, mew=0.7, zorder=5
                )
            axes.text(1.03 * reach, position, down(row.exact.eps_lower), va="center", fontweight="bold")
            axes.text(
                1.115 * reach, position, f"{percent(row.share)} of the claim", va="center", color=QUIET, fontsize=8.8
            )
        axes.axvline(claim.eps_pld_upper, color=CLAIM, lw=1.8, zorder=3)
        axes.axvline(claim.eps_prv, color=CLAIM, lw=0.8, ls=(0, (4, 3)), zorder=3)
        axes.set_yticks(range(len(found)), [row.attack for row in found])
        axes.set_ylim(len(found) - 0.45, -0.55)
        _scale(axes, reach, room=1.31)
        axes.set_xlabel("ε", loc="left")
        _legend_of_epsilons(figure, audit)
        title(
            figure,
            "What each attack shows, against what is promised",
            "bars and circles: exact for the modelled mechanism · filled marks: certified from trials",
            qualifiers(claim),
        )
    return figure


def _scale(axes: Axes, reach: float, room: float) -> None:
    """An epsilon axis from 0 to ``reach``, with ``room * reach`` for labels; no frame but its baseline."""
    from matplotlib.ticker import MaxNLocator

    axes.set_xlim(0, room * reach)
    axes.set_xticks([tick for tick in MaxNLocator(6).tick_values(0, reach) if tick <= reach])
    axes.spines["bottom"].set_bounds(0, reach)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")


def _legend_of_epsilons(figure: Figure, audit: RoundAudit) -> None:
    from matplotlib.lines import Line2D

    level = percent(1 - audit.alpha)
    exact = "exact: best canary, all canaries"
    counted = f"Monte-Carlo bound ({level}, {audit.trials:,} trials)"
    handles = [
        Line2D([], [], color=EXACT, lw=2.6, marker="o", mfc=PAPER, mec=EXACT, mew=1.2, ms=4.6, label=exact),
        Line2D([], [], color=VARIANCE_REDUCED, marker="D", ls="", ms=6, label=f"variance-reduced bound ({level})"),
        Line2D([], [], color=MONTE_CARLO, marker="^", ls="", ms=6.6, label=counted),
        Line2D([], [], color=CLAIM, lw=1.8, label=f"claim {audit.claim.eps_pld_upper:.4f} (PLD, upper)"),
        Line2D([], [], color=CLAIM, lw=0.8, ls=(0, (4, 3)), label=f"{audit.claim.eps_prv:.3f} (PRV, as published)"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, columnspacing=2.2, handlelength=1.8)


def waterfalls(audit: RoundAudit, attacks: Sequence[str] | None = None) -> Figure:
    """Where the distance to the claim goes: strongest canary of each given attack (default: the featured two)."""
    chosen = _chosen(audit, attacks)
    steps = max(len(row.strongest.waterfall.steps) for row in chosen)
    with look():
        figure, panels = canvas(8.4, 1.85 + 0.40 * steps, len(chosen), shared=True)
        for axes, row in zip(panels, chosen, strict=True):
            _waterfall(axes, row, audit.claim)
        panels[0].set_ylim(steps - 0.4, -0.6)
        panels[0].set_yticks(range(steps), [step.name for step in chosen[0].strongest.waterfall.steps])
        title(
            figure,
            "Where the distance to the promise goes",
            "ε left after each step, and the change · blue: exact for the modelled mechanism · orange: certified",
            qualifiers(audit.claim),
        )
    return figure


def _waterfall(axes: Axes, row: Row, claim: Claim) -> None:
    steps = row.strongest.waterfall.steps
    reach = max(claim.eps_pld_upper, *(step.eps for step in steps))
    before = steps[0].eps
    for position, step in enumerate(steps):
        strong = position in (0, len(steps) - 1)
        axes.barh(position, step.eps, height=0.62, color=_SHADE[step.assurance], alpha=0.9 if strong else 0.28, lw=0)
        if step.eps < before:
            axes.barh(position, before - step.eps, left=step.eps, height=0.62, color=LOSS, lw=0)
        if position:
            axes.plot([before, before], [position - 0.69, position + 0.31], color=QUIET, lw=0.8)
            axes.text(1.34 * reach, position, _signed(step.eps - before), va="center", fontsize=8.8, color=QUIET)
        axes.text(1.04 * reach, position, down(step.eps), va="center", fontweight="bold")
        before = step.eps
    axes.axvline(claim.eps_pld_upper, color=CLAIM, lw=1.5)
    _scale(axes, reach, room=1.66)
    axes.set_xlabel(f"ε · line: the claim, {claim.eps_pld_upper:.4f}", loc="left")
    axes.set_title(f"{row.attack}, {row.kind}")


def _signed(change: float) -> str:
    return "±0.000" if abs(change) < 0.0005 else f"{change:+.3f}".replace("-", "−")


def trade_offs(audit: RoundAudit, attacks: Sequence[str] | None = None) -> Figure:
    """Power against false alarms, with the region that the claim allows; both axes logarithmic."""
    chosen = _chosen(audit, attacks)
    floor = 0.3 / audit.trials
    with look():
        figure, panels = canvas(8.4, 4.7, len(chosen), shared=True)
        for axes, row in zip(panels, chosen, strict=True):
            _trade_off(axes, row.strongest, audit.claim, floor)
            axes.set_title(f"{row.attack}, {row.kind}")
        panels[0].set_ylabel("canary eligible and flagged (TPR)")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, columnspacing=1.8, handlelength=1.8)
        title(
            figure,
            "How well the attack tells that the canary was eligible",
            "strongest canary · curve: exact for the modelled mechanism · points: trials, each with its own band",
            qualifiers(audit.claim),
        )
    return figure


def dp_border(fpr: Array, eps: float, delta: float) -> tuple[Array, Array]:
    """Smallest and largest TPR that (eps, delta)-DP allows at each false-positive rate.

    Kairouz, Oh and Viswanath (2015): ``TPR <= e^eps FPR + delta`` and ``1 - FPR <= e^eps (1 - TPR) + delta``, and both
    with the hypotheses exchanged.
    """
    grow, shrink = math.exp(eps), math.exp(-eps)
    highest = np.minimum(np.minimum(grow * fpr + delta, 1 - shrink * (1 - fpr - delta)), 1.0)
    lowest = np.maximum(np.maximum(shrink * (fpr - delta), 1 - grow * (1 - fpr) - delta), 0.0)
    return lowest, highest


def _trade_off(axes: Axes, canary: CanaryAudit, claim: Claim, floor: float) -> None:
    curve = canary.trade_off
    grid = np.geomspace(floor, 1.0, 400)
    lowest, highest = dp_border(grid, claim.eps_pld_upper, claim.delta)
    axes.fill_between(grid, np.maximum(lowest, floor), highest, color=CLAIM, alpha=0.07, lw=0, label="the claim allows")
    axes.plot(grid, highest, color=CLAIM, lw=1.6, label=f"its border, ε = {claim.eps_pld_upper:.4f}")
    axes.plot(grid, np.maximum(lowest, floor / 9), color=CLAIM, lw=0.8)
    axes.plot(grid, grid, color=QUIET, lw=0.9, ls=(0, (4, 3)), label="guessing")
    axes.plot(curve.fpr, curve.tpr, color=EXACT, lw=2, label="exact curve")
    low, seen, high = (np.asarray(rates) for rates in (curve.tpr_low, curve.sampled_tpr, curve.tpr_high))
    axes.errorbar(
        curve.sampled_fpr,
        seen,
        yerr=(np.maximum(seen - low, 0), np.maximum(high - seen, 0)),
        fmt="o",
        ms=3.6,
        color=MONTE_CARLO,
        elinewidth=1.3,
        capsize=2.5,
        zorder=4,
        label=f"trials, {curve.confidence:.0%} each",
    )
    axes.plot(*curve.chosen, "*", ms=13, color=INK, mec=PAPER, mew=0.8, zorder=6, label="calibrated threshold")
    axes.set(xscale="log", yscale="log", xlim=(floor, 1), ylim=(floor, 1.6), xlabel="false alarms (FPR)")
    axes.minorticks_off()
    axes.grid()


def probe_votes(audit: RoundAudit, attacks: Sequence[str] | None = None) -> Figure:
    """What the canary adds to each audited candidate, beside other users' expected traffic and the noise."""
    chosen = _chosen(audit, attacks)
    with look():
        figure, panels = canvas(8.4, 3.9, len(chosen), shared=True)
        for axes, row in zip(panels, chosen, strict=True):
            _probe_votes(axes, row.strongest)
            axes.set_title(f"{row.attack}, {row.kind}")
        panels[0].set_ylabel("votes on one candidate")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, columnspacing=1.8, handlelength=1.6)
        title(
            figure,
            "The canary's vote, beside other users' votes and the noise",
            "strongest canary · candidates by the canary's vote · other users' sum as estimated from public users",
            qualifiers(audit.claim),
        )
    return figure


def _probe_votes(axes: Axes, canary: CanaryAudit) -> None:
    votes = canary.probe_votes
    mean, std = np.asarray(votes.background_mean), np.asarray(votes.background_std)
    rank = np.arange(1, len(mean) + 1)
    axes.axhspan(0, votes.noise_std, color=LOSS, alpha=0.35, lw=0, label="one noise standard deviation")
    label = "their spread (one std)"
    low = np.maximum(mean - std, 0)
    axes.fill_between(rank, low, mean + std, step="mid", color=MONTE_CARLO, alpha=0.25, lw=0, label=label)
    axes.step(rank, mean, where="mid", color=MONTE_CARLO, lw=1.3, label="other users, expected")
    axes.bar(rank, votes.canary, width=0.8, color=EXACT, label="canary", zorder=3)
    axes.set_xlim(0.2, len(mean) + 0.8)
    axes.set_ylim(0, None)
    axes.set_xlabel(f"{canary.size} audited candidates, ranked")
    axes.grid(axis="y", color=GRID)


def _chosen(audit: RoundAudit, attacks: Sequence[str] | None) -> tuple[Row, ...]:
    if attacks is None:
        return featured(audit)
    found = {row.attack: row for row in rows(audit)}
    return tuple(found[name] for name in attacks)


FIGURES = {"epsilons": epsilons, "waterfall": waterfalls, "trade-off": trade_offs, "probe-votes": probe_votes}
"""File stem to figure."""
