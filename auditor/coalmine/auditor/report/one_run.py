"""A one-run audit for people and programs: one figure, one table, one page, and strict JSON."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from coalmine.auditor.one_run_audit import OneRunAudit, OneRunStudy
from coalmine.auditor.report.one_run_figure import readings
from coalmine.auditor.report.page import page, picture
from coalmine.auditor.report.pictures import write_figure
from coalmine.auditor.report.record import strict
from coalmine.auditor.report.wording import attacker, brief, down, percent, promise, qualifiers, releases
from coalmine.auditor.report.write import write_json, write_text
from coalmine.protocol.finding import Verdict

if TYPE_CHECKING:
    from rich.console import RenderableType

FORMAT = "coalmine one-run 1"
_SAID = {
    "one-run/steinke": "guesses that are right, under (ε, δ)-DP (Steinke et al. 2023)",
    "one-run/claim-family": "largest noise multiplier of the claim's own kind that is not rejected, as its ε",
    "one-run/gdp": "guesses that are right, under Gaussian DP (Mahloujifar et al. 2024); subsampling is not Gaussian",
    "one-run/gaussian": "both groups of scores as Gaussians (Agrawal et al. 2026), continued into their tails",
}


def headline(found: OneRunStudy) -> str:
    """The claim with its numbers; participation is part of it."""
    claim = found.audit.claim
    return (
        f"{found.study}: claim ε ≤ {claim.eps_pld_upper:.4f} (PLD; PRV {claim.eps_prv:.3f}) for {releases(claim)},"
        f" participation q = {claim.q:g} included, σ = {claim.sigma:g}"
    )


def table(found: OneRunStudy) -> list[dict[str, str]]:
    """One row per reading, as text."""
    audit = found.audit
    return [
        {
            "reading": one.method.removeprefix("one-run/"),
            "ε ≥": down(one.eps_lower),
            "of claim": percent(one.eps_lower / audit.claim.eps_pld_upper),
            "assurance": one.assurance.value,
            "level": percent(1 - audit.level),
            "what it is": _SAID[one.method],
        }
        for one in audit.evidence
    ]


def records(found: OneRunStudy) -> list[dict[str, Any]]:
    """One plain record per reading, for tables that programs read."""
    claim = found.audit.claim
    return [
        {
            "reading": one.method,
            "assurance": one.assurance.value,
            "confidence": one.confidence,
            "eps_lower": one.eps_lower,
            "claim": claim.eps_pld_upper if math.isfinite(claim.eps_pld_upper) else None,
            "q": claim.q,
            "adjacency": claim.adjacency.value,
            "unit": claim.unit.value,
        }
        for one in found.audit.evidence
    ]


def tests(audit: OneRunAudit) -> tuple[str, ...]:
    """What the formal tests of the claim itself say."""
    level = brief(audit.level)
    curve = "rejected" if audit.curve_rejected else "not rejected"
    noise = (
        f"noise multipliers from {audit.sigma_rejected:.3g} on are rejected"
        if audit.sigma_rejected is not None
        else "no noise multiplier up to four times the claimed one is rejected"
    )
    return (
        f"Steinke's test of the claim at its ε and δ: p-value {brief(audit.claim_p_value)}, level {level} (formal).",
        f"The claim's own trade-off curve, q and all releases included: {curve} at level {level} (formal).",
        f"At this q and so many releases {noise} (formal).",
    )


def guessed(audit: OneRunAudit) -> str:
    """How many guesses were made and were right."""
    seen = audit.guesses
    return (
        f"{seen.correct} of {seen.guesses} guesses right ({audit.say_in} in, {audit.say_out} out) on {seen.canaries}"
        " canaries, each included with probability 1/2"
    )


def to_rich(found: OneRunStudy) -> RenderableType:
    """The table for a terminal, and what the formal tests say."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    audit = found.audit
    shown = Table(
        title=Text(headline(found), style="bold"),
        caption=Text(f"{qualifiers(audit.claim)}\n{guessed(audit)}", style="dim"),
        title_justify="left",
        caption_justify="left",
        header_style="bold",
    )
    rows = table(found)
    for name in rows[0]:
        shown.add_column(name, justify="right" if name in ("ε ≥", "of claim") else "left", no_wrap=name != "what it is")
    for row in rows:
        shown.add_row(*row.values())
    bad = "bold red" if audit.verdict is Verdict.CONTRADICTED else "bold"
    return Group(shown, *(Text(line) for line in tests(audit)), Text(f"\nVerdict: {audit.verdict}", style=bad))


def to_json(found: OneRunStudy) -> dict[str, Any]:
    """Strict JSON, in the manner of ``findings.json``."""
    document = TypeAdapter(OneRunStudy).dump_python(found, mode="json")
    return {"format": FORMAT, "verdict": found.audit.verdict.value, **strict(document)}


def publish(found: OneRunStudy, folder: Path) -> Path:
    """Write ``figures/one-run.*``, ``report.html`` and, last, ``one-run.json``.

    Returns:
        The path of ``report.html``.

    Raises:
        StorageError: no space or no permission.
    """
    drawing = write_figure(readings(found), "one-run", folder)
    report = write_text(folder / "report.html", _page(found, drawing))
    write_json(folder / "one-run.json", to_json(found))
    return report


def _page(found: OneRunStudy, drawing: str) -> str:
    audit = found.audit
    return page(
        "one_run.html.j2",
        {
            "found": found,
            "audit": audit,
            "claim": audit.claim,
            "mechanism": found.mechanism,
            "headline": headline(found),
            "qualifiers": qualifiers(audit.claim),
            "attacker": attacker(audit.claim),
            "promise": promise(audit.claim),
            "guessed": guessed(audit),
            "rows": table(found),
            "tests": tests(audit),
            "fits": audit.gaussian.details,
            "level": percent(1 - audit.level),
            "contradicted": audit.verdict is Verdict.CONTRADICTED,
            "figure": picture(drawing, "one-run", "Epsilon of each reading against the claim, and scores of canaries"),
        },
    )
