"""Trained models and audits for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coalmine.auditor.membership.result import Arm, MembershipAudit, Subject, Trained
from coalmine.auditor.report.wording import down
from coalmine.protocol.finding import Verdict
from coalmine.protocol.privacy import Assurance, Claim

if TYPE_CHECKING:
    from rich.console import RenderableType


def promise(claim: Claim) -> str:
    """The claim with its numbers and qualifiers."""
    return (
        f"claim ε ≤ {claim.eps_pld_upper:.4f} (PLD; PRV {claim.eps_prv:.3f}) at δ = {claim.delta:g} after"
        f" {claim.rounds} steps, q = {claim.q:g}, σ = {claim.sigma:g}; one {claim.unit}, {claim.adjacency},"
        f" {claim.assurance}; the attacker sees {claim.threat_model}"
    )


def trained_rich(found: Trained) -> RenderableType:
    """The end of ``coalmine train``."""
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(f"{found.study}: {promise(found.claim)}", style="bold"),
        caption=Text(found.trust, style="dim"),
        title_justify="left",
        caption_justify="left",
        title_style="",
        caption_style="",
        show_header=False,
    )
    table.add_row("mode", f"{found.mode}, {found.clients} clients, {found.rounds} rounds")
    table.add_row("accuracy", f"{found.accuracy:.3f} on {found.test_samples} test samples")
    table.add_row("before training", f"{found.accuracy_before:.3f}")
    if found.largest_drop:
        table.add_row("filter", f"drops at most {found.largest_drop} samples")
    return table


def audit_rich(found: MembershipAudit) -> RenderableType:
    """The end of ``coalmine audit training``: a row for each canary, a column for each convention, formal first."""
    from rich.console import Group
    from rich.text import Text

    rows = [(arm, subject) for arm in found.arms for subject in arm.subjects]
    shapes = dict.fromkeys(_methods(subject) for _, subject in rows)
    tables = [_table(found, methods, [row for row in rows if _methods(row[1]) == methods]) for methods in shapes]
    accuracies = [
        f"{arm.name}: accuracy {arm.accuracy:.3f} ± {arm.accuracy_std:.3f}"
        + (f", from a random start {arm.accuracy_random_start:.3f}" if arm.accuracy_random_start is not None else "")
        + (f"; {100 * arm.lost:.1f} % of the samples dropped" if arm.lost else "")
        for arm in found.arms
    ]
    return Group(
        Text(f"{found.study}: {promise(found.claim)}", style="bold"),
        "",
        *tables,
        "",
        *accuracies,
        f"before training: accuracy {found.accuracy_before:.3f}",
        Text(
            "heur.: heuristic, proves nothing; ceiling: the most that a formal bound of so many models can show", "dim"
        ),
        *(Text(note, style="dim") for note in found.notes),
        Text(found.verdict.value, style="bold"),
    )


def _methods(subject: Subject) -> tuple[str, ...]:
    return tuple(one.method for one in subject.findings[0].evidence)


def _table(found: MembershipAudit, methods: tuple[str, ...], rows: list[tuple[Arm, Subject]]) -> RenderableType:
    from rich import box
    from rich.table import Table

    first = rows[0][1].findings[0].evidence
    table = Table(header_style="bold", box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    table.add_column("filter", min_width=6)
    table.add_column("canary", min_width=max(len(subject.name) for _, subject in rows) if "gdp" in methods else None)
    for method, one in zip(methods, first, strict=True):
        title = f"{_SHORT.get(method.split(' (')[0], method)}\n{_BRIEF.get(one.assurance, one.assurance.value)}"
        table.add_column(title, justify="right", overflow="fold", min_width=max(map(len, title.split("\n"))))
    table.add_column("ceiling", justify="right")
    table.add_column("epoch\ndropped" if "gdp" in methods else "share\ndropped", justify="right")
    told = ""
    for arm, subject in rows:
        cells = [_bound(one.mean, one.std, one.values) for one in subject.repeated]
        ceilings = [
            one.details["ceiling"]
            for one in subject.findings[0].evidence
            if one.assurance is Assurance.FORMAL and "ceiling" in one.details
        ]
        table.add_row(
            {"with filter": "yes", "without filter": "no"}.get(arm.name, arm.name) if arm.name != told else "",
            subject.name,
            *cells,
            f"{max(ceilings):.1f}" if ceilings else "",
            "" if subject.dropped_in is None else f"{subject.dropped_in:.3g}",
            style="red" if subject.verdict is Verdict.CONTRADICTED else "",
        )
        told = arm.name
    return table


_BRIEF = {Assurance.HEURISTIC: "heur."}
_SHORT = {
    "clopper_pearson_holdout": "cp\nholdout",
    "clopper_pearson_bonferroni": "cp\nbonf.",
    "multiple_hypothesis": "best\nratio",
    "multiple_hypothesis/clopper_pearson": "best\ncp",
    "gdp_holdout": "gdp\nholdout",
    "gdp": "\ngdp",
    "one_run/steinke": "\nsteinke",
    "one_run/claim_curve": "claim's\ncurve",
    "one_run/gdp": "\ngdp",
    "one_run/gaussian": "\ngaussian",
}


def _bound(mean: float, std: float, values: tuple[float, ...]) -> str:
    """Rounded down; with several repetitions their spread and every one of them."""
    if len(values) == 1:
        return down(mean, 2)
    return "\n".join([down(mean, 2), f"±{std:.2f}", *(down(value, 2) for value in values)])
