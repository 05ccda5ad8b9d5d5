"""What a person sees on the terminal: a verdict per class, then the numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from coalmine.auditor.disclosure.report.rows import Row, rows
from coalmine.auditor.disclosure.result import DisclosureAudit, DisclosureVerdict
from coalmine.auditor.report.wording import brief, down, fixed, percent

if TYPE_CHECKING:
    from rich.console import RenderableType

STYLES = {
    DisclosureVerdict.LEAKS: "bold red",
    DisclosureVerdict.NO_EVIDENCE: "bold green",
    DisclosureVerdict.TOO_LITTLE: "bold yellow",
}
_WIDE = 104
_WIDE_NOTES = (
    "p: smallest of the declared tests of the class; Holm: corrected for all declared tests, verdicts use it.",
    "p̂ ≥: lower bound on the rate at which holders of a match are in train, at the same confidence.",
)
_NARROW_NOTES = ("Holm p: smallest of the declared tests of the class, corrected for all; verdicts use it.",)


def qualifiers(audit: DisclosureAudit) -> str:
    """Everything without which an epsilon means nothing, in one line."""
    delta = f"δ = 0 (user match: δ = {brief(audit.delta)})" if audit.delta else "δ = 0"
    return (
        f"{delta} · neighbours: {audit.adjacency} · unit: {audit.unit} · attacker sees: the synthetic output · "
        f"assignment: {audit.assignment}, p = {brief(audit.p)} · {audit.assurance}"
    )


def headline(audit: DisclosureAudit) -> str:
    """Whose data, how much of it."""
    return (
        f"{audit.name}: {audit.train:,} users in train, {audit.holdout:,} held out, "
        f"{audit.synthetic_records:,} synthetic records"
    )


def to_rich(audit: DisclosureAudit, width: int = 80) -> RenderableType:
    """Verdicts with their reasons, the table, and what it rests on."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    parts: list[RenderableType] = [Text(headline(audit), style="bold")]
    for one in audit.classes:
        parts.append(Text.assemble("\n", (f"{one.name}: ", "bold"), (one.verdict.value, STYLES[one.verdict])))
        parts.append(Padding(Text(" ".join(one.reasons)), (0, 0, 0, 2)))
        parts += [Padding(Text(note, style="dim"), (0, 0, 0, 2)) for note in one.notes]
    wide = width >= _WIDE
    table = Table(
        header_style="bold", caption_justify="left", caption_style="dim", caption="\n".join(notes(audit, wide))
    )
    for index, heading in enumerate(_headings(wide)):
        table.add_column(heading, justify="left" if index == 0 else "right", no_wrap=True)
    for row in rows(audit):
        table.add_row(*_cells(row, wide))
    parts += [Text(""), table]
    parts += [Text(f"! {warning}", style="yellow") for warning in audit.warnings]
    return Group(*parts)


def notes(audit: DisclosureAudit, wide: bool) -> tuple[str, ...]:
    """How to read the table: only of columns that it has."""
    level = percent(1 - audit.alpha)
    claim: tuple[str, ...] = ()
    if audit.claimed_eps is not None:
        said = "contradicted" if audit.claim_contradicted else "not contradicted"
        claim = (f"The claim ε = {brief(audit.claimed_eps)} is {said} (Holm over the classes).",)
    return (
        qualifiers(audit),
        *(_WIDE_NOTES if wide else _NARROW_NOTES),
        f"ε ≥: feature match / user match, lower bounds, {level} confidence each.",
        "A held-out match is a phantom: it needed no training data.",
        *claim,
        "That nothing was found is no proof of privacy.",
    )


def _headings(wide: bool) -> list[str]:
    if wide:
        return ["class", "total", "train", "held out", "chance", "p", "Holm", "p̂ ≥", "ε ≥", "AUC"]
    return ["class", "total", "train", "held out", "Holm p", "ε ≥", "AUC"]


def _cells(row: Row, wide: bool) -> list[str]:
    both = (row.eps_feature, row.eps_user)
    return [
        f"{row.name} ({row.counted})" if wide else row.name,
        _number(row.total),
        _number(row.train),
        _number(row.holdout),
        *([dash(row.expected, brief)] if wide else []),
        *([dash(row.p_value, _short)] if wide else []),
        dash(row.p_holm, _short),
        *([dash(row.p_hat, down)] if wide else []),
        "–" if both == (None, None) else " / ".join(dash(eps, lambda value: down(value, 2)) for eps in both),
        dash(row.auc, fixed),
    ]


def dash(value: float | None, shown: Callable[[float], str]) -> str:
    """The number, or a dash where there is none: never a 0 for "not known"."""
    return "–" if value is None else shown(value)


def _short(value: float) -> str:
    return brief(value, 2)


def _number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"
