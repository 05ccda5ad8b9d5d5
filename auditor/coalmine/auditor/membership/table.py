"""Trained models and audits for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coalmine.auditor.membership.report.views import attacks_see
from coalmine.auditor.membership.report.wording import white_box
from coalmine.auditor.membership.result import Arm, Audited, MembershipAudit, Subject, Trained
from coalmine.auditor.report.wording import brief, down
from coalmine.protocol.finding import Verdict
from coalmine.protocol.privacy import Assurance, Claim

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


def promise(claim: Claim) -> str:
    """The claim with its numbers and qualifiers."""
    return (
        f"claim ε ≤ {claim.eps_pld_upper:.4f} (PLD; PRV {claim.eps_prv:.3f}) at δ = {brief(claim.delta)} after"
        f" {claim.rounds} steps, q = {claim.q:g}, σ = {claim.sigma:g}; one {claim.unit}, {claim.adjacency},"
        f" {claim.assurance}; the claim's attacker sees {claim.threat_model}"
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

    tables = [_table(methods, rows) for methods, rows in by_methods(found).items()]
    if found.label_only:
        tables.append(_label_only(found))
    if found.disparate:
        tables.append(_disparate(found))
    accuracies = [
        f"{arm.name}: accuracy {arm.accuracy:.3f} ± {arm.accuracy_std:.3f}"
        + (f", from a random start {arm.accuracy_random_start:.3f}" if arm.accuracy_random_start is not None else "")
        + (f"; {100 * arm.lost:.1f} % of the samples dropped" if arm.lost else "")
        for arm in found.arms
    ]
    return Group(
        Text(f"{found.study}: {promise(found.claim)}", style="bold"),
        *filter(None, [attacks_see(found)]),
        "",
        *tables,
        "",
        *accuracies,
        f"before training: accuracy {found.accuracy_before:.3f}",
        Text(
            "heur.: heuristic, proves nothing; ceiling: the most that a formal bound of so many models can show", "dim"
        ),
        *(Text(line, style="dim") for line in filter(None, [legend(found)])),
        *(Text(note, style="dim") for note in (*found.notes, *white_box(found))),
        Text(found.verdict.value, style="bold"),
        *([] if found.alarm is None else [Text(found.alarm, style="bold red")]),
    )


def audited_rich(found: Audited) -> RenderableType:
    """A single audit, or every point of a sweep one after another."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    for values, audit in found.points:
        if values:
            parts.append(Text(", ".join(f"{key} = {value}" for key, value in values.items()), style="bold underline"))
        parts.append(audit_rich(audit))
    return Group(*parts)


def by_methods(found: MembershipAudit) -> dict[tuple[str, ...], list[tuple[Arm, Subject]]]:
    """Rows that can stand in one table: same methods in the same order."""
    tables: dict[tuple[str, ...], list[tuple[Arm, Subject]]] = {}
    for arm in found.arms:
        for subject in arm.subjects:
            methods = tuple(one.method for one in subject.findings[0].evidence)
            tables.setdefault(methods, []).append((arm, subject))
    return tables


def heading(method: str) -> str:
    """A method's short name; it may be broken where it has a line end."""
    return _SHORT.get(method.split(" (")[0], method)


def legend(found: MembershipAudit) -> str:
    """The words of the headings that the audit's tables have, resolved; empty without a table."""
    used = {word for methods in by_methods(found) for method in methods for word in heading(method).split()}
    return "; ".join(f"{word}: {meaning}" for word, meaning in _WORDS.items() if word in used)


def highest(subject: Subject) -> float | None:
    """The most that a formal bound of so many models can show."""
    ceilings = [
        one.details["ceiling"]
        for one in subject.findings[0].evidence
        if one.assurance is Assurance.FORMAL and "ceiling" in one.details
    ]
    return max(ceilings, default=None)


def _plain_table(title: str | None = None) -> Table:
    from rich import box
    from rich.table import Table

    return Table(
        title=title,
        title_justify="left",
        title_style="",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        padding=0,
        show_edge=False,
    )


def _label_only(found: MembershipAudit) -> RenderableType:
    first = found.label_only[0]
    table = _plain_table(
        f"labels only, heuristic: {first.canaries} mislabeled, {first.models} models, {first.views} views"
    )
    table.add_column("defence")
    for rate in first.rates:
        table.add_column(f"TPR at {100 * rate.fpr:g} % FPR", justify="right")
    table.add_column("accuracy", justify="right")
    for one in found.label_only:
        cells = [f"{100 * rate.tpr:.2f} % [{100 * rate.low:.1f}, {100 * rate.high:.1f}]" for rate in one.rates]
        table.add_row(one.defence, *cells, f"{one.accuracy:.3f}")
    return table


def _disparate(found: MembershipAudit) -> RenderableType:
    table = _plain_table("who pays, heuristic (group 1 is the minority)")
    for name in ("minority", "of whom", "samples", "dropped", "accuracy", "unfiltered"):
        table.add_column(name, justify="left" if name == "of whom" else "right")
    for one in found.disparate:
        seen = one.impact
        for gone, right, before in zip(seen.dropped, seen.accuracy, seen.accuracy_unfiltered, strict=True):
            share = "" if one.minority is None else f"{100 * one.minority:g} %"
            cells = (f"{gone.samples}", f"{100 * gone.mean:.1f} %", f"{right.mean:.3f}", f"{before.mean:.3f}")
            table.add_row(share, gone.of, *cells)
    return table


def _table(methods: tuple[str, ...], rows: list[tuple[Arm, Subject]]) -> RenderableType:
    first = rows[0][1].findings[0].evidence
    table = _plain_table()
    table.add_column("filter", min_width=6)
    table.add_column(
        "canary", min_width=max(len(subject.name) for _, subject in rows) if len(rows[0][1].name) < 16 else None
    )
    for method, one in zip(methods, first, strict=True):
        title = f"{heading(method)}\n{_BRIEF.get(one.assurance, one.assurance.value)}"
        table.add_column(title, justify="right", overflow="fold", min_width=max(map(len, title.split("\n"))))
    table.add_column("ceiling", justify="right")
    table.add_column("epoch\ndropped" if methods[0] == "clopper_pearson_holdout" else "share\ndropped", justify="right")
    told = ""
    for arm, subject in rows:
        cells = [_bound(one.mean, one.std, one.values) for one in subject.repeated]
        ceiling = highest(subject)
        table.add_row(
            {"with filter": "yes", "without filter": "no"}.get(arm.name, arm.name) if arm.name != told else "",
            subject.name,
            *cells,
            "" if ceiling is None else f"{ceiling:.1f}",
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
    "white_box/score": "score's\nown",
    "onion/clopper_pearson_holdout": "cp\nholdout",
    "onion/multiple_hypothesis": "best\ncp",
    "one_run/steinke": "\nsteinke",
    "one_run/claim_curve": "claim's\ncurve",
    "one_run/gdp": "\ngdp",
    "one_run/gaussian": "\ngaussian",
}


_WORDS = {
    "cp": "Clopper-Pearson",
    "bonf.": "Bonferroni over all thresholds",
    "holdout": "threshold (onion: and sample) chosen on half of the models, number from the other half",
    "best": "uncorrected maximum over thresholds (onion: and samples), heuristic",
    "ratio": "log ratio of observed rates",
    "gdp": "read off a Gaussian mechanism's trade-off curve, heuristic",
    "own": "exact epsilon of the score under the measured noise",
    "steinke": "Steinke et al., one run",
    "curve": "the claim's trade-off curve at the largest epsilon that the guesses reject",
    "gaussian": "two Gaussians fitted to the scores, heuristic",
}
"""Of the headings in ``_SHORT``."""


def _bound(mean: float, std: float, values: tuple[float, ...]) -> str:
    """Rounded down; with several repetitions their spread and every one of them."""
    if len(values) == 1:
        return down(mean, 2)
    return "\n".join([down(mean, 2), f"±{std:.2f}", *(down(value, 2) for value in values)])
