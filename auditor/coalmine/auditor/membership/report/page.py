"""``report.html`` of a training audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from coalmine.auditor.membership.report.views import attacks_see, qualifiers
from coalmine.auditor.membership.report.wording import answer, fallen, left, swept, white_box
from coalmine.auditor.membership.result import Audited, MembershipAudit, Value
from coalmine.auditor.membership.table import by_methods, heading, highest, legend
from coalmine.auditor.report.page import page, picture
from coalmine.auditor.report.wording import attacker, down, percent
from coalmine.protocol.finding import Verdict

_LABELS = {
    "epsilons": "Bounds of every attack with and without the filter against the claim",
    "drops": "Share of models that dropped each canary over epochs",
    "label-only": "True-positive rate of the label-only attack against each defence",
    "accuracy": "Accuracy with and without the filter",
    "lost": "Share of each class and subgroup that the filter drops",
    "disparate": "Dropped share and accuracy of each subgroup",
}


@dataclass(frozen=True)
class Row:
    """One canary in one arm; cells are text."""

    arm: str
    name: str
    cells: tuple[str, ...]
    ceiling: str
    dropped: str
    contradicted: bool


@dataclass(frozen=True)
class Table:
    """Rows with the same methods; heads are (method, assurance)."""

    heads: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]


def render(found: Audited, drawings: Mapping[str, str]) -> str:
    """The page.

    Args:
        drawings: SVG documents by figure name; those that the audit has no numbers for are left out.
    """
    first = found.points[0][1]
    context = {
        "study": found.study,
        "swept": swept(found) if found.keys else "",
        "qualifiers": qualifiers(first),
        "attacker": attacker(first.claim),
        "level": percent(1 - first.alpha),
        "points": [_point(values, audit) for values, audit in found.points],
        "figures": {name: picture(svg, name, _LABELS[name]) for name, svg in drawings.items()},
    }
    return page("membership.html.j2", context, package="coalmine.auditor.membership")


def _point(values: dict[str, Value], audit: MembershipAudit) -> dict[str, object]:
    return {
        "name": ", ".join(f"{key} = {value}" for key, value in values.items()),
        "audit": audit,
        "answer": answer(audit),
        "alarm": audit.verdict is Verdict.CONTRADICTED,
        "left": left(audit),
        "fallen": fallen(audit),
        "white_box": white_box(audit),
        "attacks_see": attacks_see(audit),
        "legend": legend(audit),
        "tables": _tables(audit),
    }


def _tables(audit: MembershipAudit) -> tuple[Table, ...]:
    return tuple(
        Table(
            tuple(
                (" ".join(heading(one.method).split()), one.assurance.value) for one in rows[0][1].findings[0].evidence
            ),
            tuple(
                Row(
                    arm.name,
                    subject.name,
                    tuple(_cell(one.mean, one.std, len(one.values)) for one in subject.repeated),
                    "–" if (ceiling := highest(subject)) is None else f"{ceiling:.1f}",
                    _dropped(subject.dropped_in, single=bool(subject.drops)),
                    subject.verdict is Verdict.CONTRADICTED,
                )
                for arm, subject in rows
            ),
        )
        for rows in by_methods(audit).values()
    )


def _cell(mean: float, std: float, repetitions: int) -> str:
    return down(mean, 2) if repetitions == 1 else f"{down(mean, 2)} ± {std:.2f}"


def _dropped(value: float | None, *, single: bool) -> str:
    if value is None:
        return "–"
    return f"epoch {value:g}" if single else percent(value)
