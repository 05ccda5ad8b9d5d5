"""The table that ends a study: for the terminal (rich) and as Markdown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from coalmine.auditor.report.summary import Row, elsewhere_names, numerical_error, rows
from coalmine.auditor.report.wording import (
    ELSEWHERE,
    brief,
    down,
    fixed,
    how_to_read,
    percent,
    qualifiers,
    releases,
    verdict,
)
from coalmine.auditor.result import RoundAudit
from coalmine.protocol.finding import Evidence, Verdict

if TYPE_CHECKING:
    from rich.console import RenderableType

_WIDE = 116
"""Terminal columns from which the second set of coordinates has its own column."""


def headline(audit: RoundAudit) -> str:
    """The claim with its numbers."""
    claim = audit.claim
    return (
        f"{audit.study}: claim ε ≤ {claim.eps_pld_upper:.4f} (PLD; PRV {claim.eps_prv:.3f}) for {releases(claim)}, "
        f"q = {claim.q:g}, σ = {claim.sigma:g}"
    )


def exactly(evidence: Evidence) -> str:
    """An exact epsilon; its numerical error only where it would show in the digits given."""
    error = evidence.error or 0.0
    return down(evidence.eps_lower) + (f" +{brief(error)}" if error >= 0.0005 else "")


def to_rich(audit: RoundAudit, width: int = 80) -> RenderableType:
    """The table for a terminal of ``width`` columns."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    wide = width >= _WIDE
    table = Table(
        title=Text(headline(audit), style="bold"),
        caption=Text("\n".join((qualifiers(audit.claim), *_notes(audit, wide))), style="dim"),
        title_justify="left",
        caption_justify="left",
        title_style="",
        caption_style="",
        header_style="bold",
        expand=False,
    )
    columns = _columns(audit, wide)
    for index, name in enumerate(columns):
        table.add_column(name, justify="left" if index < 2 else "right", no_wrap=True)
    for row in rows(audit):
        style = "bold red" if row.verdict is Verdict.CONTRADICTED else ""
        table.add_row(*_cells(row, audit, wide), style=style)
    return Group(table, Text(f"\nVerdict: {verdict(audit)}", style="bold"))


def to_markdown(audit: RoundAudit) -> str:
    """The same table for a README, with a line of qualifiers above it and the reading aid below."""
    columns = _columns(audit, wide=True)
    lines = [
        f"**{headline(audit)}**  ",
        qualifiers(audit.claim),
        "",
        "| " + " | ".join(columns) + " |",
        "|" + "|".join(["---"] * 2 + ["---:"] * (len(columns) - 2)) + "|",
        *("| " + " | ".join(_cells(row, audit, wide=True)) + " |" for row in rows(audit)),
        "",
        *(f"* {line}" for line in _notes(audit, wide=True)),
        f"* Verdict: {verdict(audit)}.",
    ]
    return "\n".join(lines) + "\n"


def records(audit: RoundAudit) -> list[dict[str, str | float | None]]:
    """One plain record per attack and canary, for tables that programs read; not-finite numbers are ``None``."""
    return [
        {
            "attack": attack.name,
            "canary": canary.canary,
            "coordinates": canary.coordinates,
            "eps_exact": _finite(canary.exact.eps_lower),
            "eps_monte_carlo": _finite(canary.monte_carlo.eps_lower),
            "eps_variance_reduced": _finite(canary.variance_reduced.eps_lower),
            "confidence": canary.monte_carlo.confidence,
            "claim": audit.claim.eps_pld_upper,
            "mu_eff": _finite(canary.mu_eff),
            "tpr": canary.tpr,
            "fpr": canary.fpr,
            "verdict": attack.finding.verdict.value,
        }
        for attack in audit.attacks
        for canary in attack.canaries
    ]


def elsewhere_heading(names: tuple[str, ...]) -> str:
    """The heading of the column for the other set of coordinates; empty where nothing was scored elsewhere."""
    return f"exact ε, {names[0]}" if len(names) == 1 else "exact ε, elsewhere" if names else ""


def other(elsewhere: tuple[str, float] | None, names: tuple[str, ...]) -> str:
    """One cell below that heading."""
    if elsewhere is None:
        return "–"
    name, eps = elsewhere
    return down(eps) if len(names) == 1 else f"{down(eps)} {name}"


def _columns(audit: RoundAudit, wide: bool) -> list[str]:
    level = f" ({percent(1 - audit.alpha)})" if wide else ""
    heading = elsewhere_heading(elsewhere_names(audit))
    return [
        "attack",
        "canary",
        "exact ε",
        *([heading] if wide and heading else []),
        f"MC ε ≥{level}",
        f"VR ε ≥{level}",
        "of claim",
        "μ_eff",
    ]


def _cells(row: Row, audit: RoundAudit, wide: bool) -> list[str]:
    names = elsewhere_names(audit)
    return [
        row.attack,
        row.kind.value,
        exactly(row.exact),
        *([other(row.elsewhere, names)] if wide and names else []),
        down(row.monte_carlo.eps_lower),
        down(row.variance_reduced.eps_lower),
        percent(row.share),
        fixed(row.strongest.mu_eff),
    ]


def _notes(audit: RoundAudit, wide: bool) -> tuple[str, ...]:
    return (
        *how_to_read(audit),
        *(ELSEWHERE[name] for name in elsewhere_names(audit) if wide and name in ELSEWHERE),
        f"Certified numerical error of the exact values: at most {brief(numerical_error(audit))}.",
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
