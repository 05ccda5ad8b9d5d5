"""What attackers show, with and without the filter. Each figure is made from results; nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from coalmine.auditor.membership.report.views import attacks_see, claimed
from coalmine.auditor.membership.result import Arm, Audited, MembershipAudit, Subject
from coalmine.auditor.report.style import CLAIM, EXACT, INK, MONTE_CARLO, QUIET, VARIANCE_REDUCED, canvas, look, title
from coalmine.protocol.privacy import Assurance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (EXACT, MONTE_CARLO, VARIANCE_REDUCED, CLAIM, "#e69f00", "#56b4e9", QUIET, INK)
MARKERS = "osD^vPX*"
MOST_PANELS = 4
FILTERED = "with filter"


def formal(subject: Subject) -> float | None:
    """Mean over repetitions of the formal bound that uses all models; else of the first formal or exact one."""
    proved = [one for one in subject.repeated if one.assurance is not Assurance.HEURISTIC]
    named = [one for one in proved if one.method.startswith("clopper_pearson_bonferroni")]
    chosen = named or proved
    return chosen[0].mean if chosen else None


def headline(subject: Subject) -> float | None:
    """Mean over repetitions of the heuristic GDP reading, the literature's figure."""
    named = [one for one in subject.repeated if one.method.split(" (")[0] in ("gdp", "one_run/gdp")]
    return named[0].mean if named else None


def epsilons(found: Audited) -> Figure | None:
    """Bounds with and without filter: over the claim where there are several, else one row for each canary.

    ``None`` where no canary was tested.
    """
    if not any(arm.subjects for _, audit in found.points for arm in audit.arms):
        return None
    claims = {audit.claim.eps_pld_upper for _, audit in found.points}
    return _over_claims(found) if len(claims) > 1 else _rows(found.points[-1][1])


def _rows(audit: MembershipAudit) -> Figure:
    names = list(dict.fromkeys(one.name for arm in audit.arms for one in arm.subjects))
    single = [one for one in names if not one.startswith("group of")]
    with look():
        figure, (left, right) = canvas(10.4, 2.1 + 0.42 * max(2, len(names)), 2, shared=True)
        for axes, value, what in ((left, formal, "formal"), (right, headline, "heuristic: GDP reading")):
            axes.axvline(audit.claim.eps_pld_upper, color=CLAIM, lw=2.2, label="claim (one record)")
            for arm in audit.arms:
                shown = [(names.index(one.name), value(one)) for one in arm.subjects]
                places = [(place, eps) for place, eps in shown if eps is not None]
                filtered = arm.name == FILTERED
                axes.plot(
                    [eps for _, eps in places],
                    [place + (0.13 if filtered else -0.13) for place, _ in places],
                    ls="",
                    marker="s" if filtered else "o",
                    ms=7,
                    color=VARIANCE_REDUCED if filtered else MONTE_CARLO,
                    mfc="none" if filtered else MONTE_CARLO,
                    mew=1.8,
                    label=arm.name,
                )
            axes.set_title(what)
            axes.set_xlabel("ε ≥" if value is formal else "ε read")
            axes.set_xlim(left=-0.15)
            axes.grid(axis="x")
        left.set_yticks(range(len(names)), [name if name in single else f"{name} *" for name in names])
        left.set_ylim(len(names) - 0.5, -0.5)
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(handles))
        star = " · * about all members at once" if len(single) < len(names) else ""
        shown_against = f"{audit.study}: what attacks show against ε = {audit.claim.eps_pld_upper:.2f}"
        first, *rest = said([audit])
        title(figure, shown_against, first + star, *rest)
    return figure


def _over_claims(found: Audited) -> Figure:
    audits = sorted((audit for _, audit in found.points), key=lambda one: one.claim.eps_pld_upper)
    names = list(dict.fromkeys(one.name for audit in audits for arm in audit.arms for one in arm.subjects))
    with look():
        figure, columns = canvas(10.4, 4.6 + 0.22 * len(names), 2)
        for axes, value, what in zip(
            columns, (formal, headline), ("formal", "heuristic: GDP reading, no holdout"), strict=True
        ):
            _claim_line(axes, audits)
            for number, name in enumerate(names):
                for arm in dict.fromkeys(arm.name for audit in audits for arm in audit.arms):
                    line = _line(audits, arm, name, value)
                    axes.plot(
                        [x for x, _ in line],
                        [y for _, y in line],
                        color=COLOURS[number % len(COLOURS)],
                        marker=MARKERS[number % len(MARKERS)],
                        ms=5,
                        lw=1.5,
                        ls=(0, (4, 2)) if arm == FILTERED else "-",
                        mfc="none" if arm == FILTERED else None,
                        label=f"{name}, {arm}",
                    )
            axes.set_title(what)
            axes.set_xlabel("ε that is claimed")
            axes.grid()
        columns[0].set_ylabel("ε that is shown")
        handles, labels = columns[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
        title(
            figure,
            f"{found.study}: what attacks show over what is claimed",
            "solid, filled: without filter · dashed, hollow: with filter",
            *said(audits[:1]),
        )
    return figure


def _claim_line(axes: Axes, audits: list[MembershipAudit]) -> None:
    claimed = [audit.claim.eps_pld_upper for audit in audits]
    axes.plot(claimed, claimed, color=CLAIM, lw=2.4, label="claim (PLD, upper)")


def _line(
    audits: list[MembershipAudit], arm: str, name: str, value: Callable[[Subject], float | None]
) -> list[tuple[float, float]]:
    return [
        (audit.claim.eps_pld_upper, eps)
        for audit in audits
        for one in audit.arms
        if one.name == arm
        for subject in one.subjects
        if subject.name == name and (eps := value(subject)) is not None
    ]


def drops(found: Audited) -> Figure | None:
    """When the filter takes each canary; ``None`` where it takes none, or there is no filter."""
    panels = [(_named(values), arm) for values, audit in found.points for arm in audit.arms if _takes(arm)]
    if not panels:
        return None
    shown = panels[:MOST_PANELS]
    with look():
        figure, columns = canvas(max(7.4, 4.0 * len(shown)), 4.0, len(shown), shared=True)
        for axes, (name, arm) in zip(columns, shown, strict=True):
            for number, subject in enumerate(one for one in arm.subjects if one.drops):
                epochs, total = [0.0], [0.0]
                for drop in subject.drops:
                    epochs += [drop.epoch, drop.epoch]
                    total += [total[-1], total[-1] + drop.share]
                axes.plot(
                    [*epochs, epochs[-1] + 1],
                    [*total, total[-1]],
                    color=COLOURS[number % len(COLOURS)],
                    marker=MARKERS[number % len(MARKERS)],
                    markevery=slice(2, None, 2),
                    ms=5,
                    lw=1.6,
                    label=subject.name,
                )
            axes.set_title(name)
            axes.set_xlabel("epoch")
            axes.set_ylim(-0.03, 1.06)
            axes.grid()
            axes.legend(loc="lower right")
        columns[0].set_ylabel("share of models that dropped it")
        title(
            figure,
            "When the filter takes the canary",
            "models that hold it; late means learned already; a canary that is never taken has no line",
        )
    return figure


def label_only(found: Audited) -> Figure | None:
    """Members found by labels alone, at a low false-positive rate; ``None`` where that was not asked."""
    panels = [(_named(values), audit.label_only) for values, audit in found.points if audit.label_only][:MOST_PANELS]
    if not panels:
        return None
    with look():
        figure, columns = canvas(max(7.6, 4.2 * len(panels)), 3.6, len(panels), shared=True)
        for axes, (name, defences) in zip(columns, panels, strict=True):
            for shift, rate in enumerate(one.fpr for one in defences[0].rates):
                rates = [one.rates[shift] for one in defences]
                places = [place + 0.22 * (shift - 0.5) for place in range(len(rates))]
                ends = [[one.tpr - one.low for one in rates], [one.high - one.tpr for one in rates]]
                axes.errorbar(
                    [one.tpr for one in rates],
                    places,
                    xerr=ends,
                    fmt=MARKERS[shift],
                    color=COLOURS[shift],
                    capsize=3,
                    label=f"at most {100 * rate:g} % of non-members accused",
                )
                axes.axvline(rate, color=COLOURS[shift], lw=1, ls=(0, (2, 2)))
            axes.set_yticks(range(len(defences)), [f"{one.defence}\naccuracy {one.accuracy:.2f}" for one in defences])
            axes.set_ylim(len(defences) - 0.5, -0.5)
            axes.set_xscale("symlog", linthresh=0.01)
            axes.set_xlim(-0.0005, 1.1)
            axes.set_xticks([0, 0.01, 0.1, 1], ["0", "1 %", "10 %", "100 %"])
            axes.set_xlabel("share of members found (TPR)")
            axes.set_title(name)
            axes.grid(axis="x")
        handles, labels = columns[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
        first = panels[0][1][0]
        title(
            figure,
            "An attacker who sees labels alone",
            f"heuristic · {first.canaries} mislabeled samples in half of {first.models} models each · dotted: guessing",
        )
    return figure


def _takes(arm: Arm) -> bool:
    return any(one.drops for one in arm.subjects)


def _named(values: Mapping[str, object]) -> str:
    return ", ".join(f"{key.rpartition('.')[2]} = {value}" for key, value in values.items())


def said(audits: Sequence[MembershipAudit]) -> tuple[str, ...]:
    """Models and qualifiers, then what the attacks see; where points differ in models, all of their numbers."""
    models = " or ".join(str(one) for one in sorted({audit.models for audit in audits}))
    return tuple(filter(None, (f"{models} models a side · {claimed(audits[0].claim)}", attacks_see(audits[0]))))
