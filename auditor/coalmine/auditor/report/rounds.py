"""Audited rounds for people: one figure, one table, one page, and strict JSON for programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from coalmine.auditor.attacks import ATTACKS
from coalmine.auditor.report.page import page, picture
from coalmine.auditor.report.pictures import write_figure
from coalmine.auditor.report.record import strict
from coalmine.auditor.report.rounds_figure import privacy_and_utility
from coalmine.auditor.report.wording import ROUNDED, down, percent, qualifiers, weakness
from coalmine.auditor.report.write import write_json, write_text
from coalmine.auditor.rounds.study import RoundsAudit, contradicted, largest, verdict
from coalmine.auditor.utility.result import Repeated
from coalmine.protocol.finding import Verdict

if TYPE_CHECKING:
    from rich.console import RenderableType

FORMAT = "coalmine rounds 1"
_FIXED_WIDTH, _COLUMN_WIDTH = 47, 8
"""Characters of a table's other columns, and of a column of epsilons."""
_ESTIMATORS = {"exact": "exact ε", "monte_carlo": "MC ε ≥", "variance_reduced": "VR ε ≥"}
_CAVEAT = "That no attack here shows more does not prove that none could; a small number is no proof of privacy."
_VANISHING = 0.01
"""A bound below this has become too small to be of use."""


def headline(audit: RoundsAudit) -> str:
    """The claims of the first and the last round."""
    first, last = audit.claims[0], audit.claims[-1]
    return (
        f"{audit.study}: {last.rounds} rounds, claim ε ≤ {last.eps_pld_upper:.4f} (PLD; PRV {last.eps_prv:.3f}), after"
        f" one round {first.eps_pld_upper:.4f}; q = {last.q:g}, σ = {last.sigma:g}"
    )


def answer(audit: RoundsAudit) -> tuple[str, ...]:
    """How far the attacks come after the last round, in a few plain sentences, every figure in them from the audit."""
    if not audit.paths:
        return ("No attack was run.",)
    last = audit.claims[-1]
    values = {
        name: {attack: largest(paths, last.rounds, name) for attack, paths in audit.paths.items()}
        for name in _ESTIMATORS
    }
    first, counted, integrated = (max(values[name], key=values[name].__getitem__) for name in _ESTIMATORS)
    exact = values["exact"][first]
    share = exact / last.eps_pld_upper
    return (
        f"After {last.rounds} rounds {first}, the strongest of the attacks, reaches an exact epsilon of {down(exact)} "
        f"on these banks, {percent(share)} of the claim.",
        f"Trials alone certify at least {down(values['monte_carlo'][counted])} by counting ({counted}) and at least "
        f"{down(values['variance_reduced'][integrated])} with the noise integrated ({integrated}), with "
        f"{percent(1 - audit.alpha)} confidence for each attack by itself.",
        *weakness(share),
    )


def claimed(audit: RoundsAudit) -> list[dict[str, str]]:
    """Both accountants' claims, a column per prefix."""
    return [
        {"attack": "claim (PLD)", **{str(claim.rounds): f"{claim.eps_pld_upper:.3f}" for claim in audit.claims}},
        {"attack": "claim (PRV)", **{str(claim.rounds): f"{claim.eps_prv:.3f}" for claim in audit.claims}},
    ]


def table(audit: RoundsAudit, estimator: str = "exact") -> list[dict[str, str]]:
    """One row per attack, a column per prefix: the largest value over its canaries."""
    rounds = [claim.rounds for claim in audit.claims]
    return [
        {"attack": attack, **{str(number): down(largest(paths, number, estimator)) for number in rounds}}
        for attack, paths in audit.paths.items()
    ]


def replicas(audit: RoundsAudit) -> list[dict[str, str]]:
    """One row per attack with adaptive replicas: how many runs, and what they certify after each round."""
    return [
        {
            "attack": attack,
            "runs": f"2 × {found[0].details['trials']:g}",
            **{str(claim.rounds): down(one.eps_lower) for one, claim in zip(found, audit.claims, strict=True)},
        }
        for attack, found in audit.replicas.items()
    ]


def records(audit: RoundsAudit) -> list[dict[str, Any]]:
    """One plain record per attack, canary and prefix."""
    return [
        {
            "attack": attack,
            "canary": path.canary,
            "rounds": prefix.rounds,
            "claim": claim.eps_pld_upper,
            "eps_exact": prefix.exact.eps_lower,
            "eps_monte_carlo": prefix.monte_carlo.eps_lower,
            "eps_variance_reduced": prefix.variance_reduced.eps_lower,
            "eps_replicas": _replicated(audit, attack, path.canary, prefix.rounds),
            "tpr": prefix.tpr,
            "fpr": prefix.fpr,
        }
        for attack, paths in audit.paths.items()
        for path in paths
        for prefix, claim in zip(path.prefixes, audit.claims, strict=True)
    ]


def to_rich(audit: RoundsAudit, width: int = 80) -> RenderableType:
    """Exact epsilon after each round (in a narrow terminal after some), and what trials certify after the last."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    last = audit.claims[-1]
    shown = Table(
        title=Text(headline(audit), style="bold"),
        caption=Text(
            f"{qualifiers(last)}\nexact ε of the strongest canary after so many rounds, conditional on the banks that"
            f" came out.\nMC ≥, VR ≥: certified in the end from trials ({percent(1 - audit.alpha)} per attack over"
            f" all its canaries).\n{ROUNDED}",
            style="dim",
        ),
        title_justify="left",
        caption_justify="left",
        header_style="bold",
    )
    shown.add_column("attack", no_wrap=True)
    columns = _fitting(last.rounds, max(2, (width - _FIXED_WIDTH) // _COLUMN_WIDTH))
    for number in columns:
        shown.add_column(str(number), justify="right", no_wrap=True)
    for name in ("MC ≥", "VR ≥", "of claim"):
        shown.add_column(name, justify="right", no_wrap=True)
    broken = {attack for attack, _ in contradicted(audit)}
    for row in (*claimed(audit), *table(audit)):
        attack = row["attack"]
        last_cells = ["", "", ""]
        if attack in audit.paths:
            paths = audit.paths[attack]
            exact = largest(paths, last.rounds, "exact")
            last_cells = [
                down(largest(paths, last.rounds, "monte_carlo")),
                down(largest(paths, last.rounds, "variance_reduced")),
                percent(exact / last.eps_pld_upper),
            ]
        values = [row[str(number)] for number in columns]
        shown.add_row(attack, *values, *last_cells, style="bold red" if attack in broken else "")
    parts: list[RenderableType] = [shown]
    if audit.replicas:
        parts.append(_replicas_table(audit, columns))
    if audit.utility:
        parts.append(_utility_table(audit))
    return Group(*parts, Text(f"\nVerdict: {verdict(audit).value}", style="bold"))


def _replicated(audit: RoundsAudit, attack: str, canary: int, rounds: int) -> float | None:
    """What adaptive replicas certify: there are some of an attack's first canary at most."""
    found = audit.replicas.get(attack)
    return found[rounds - 1].eps_lower if found and canary == 1 else None


def _fitting(rounds: int, room: int) -> list[int]:
    """At most ``room`` >= 2 of the rounds, evenly spread, first and last among them."""
    if rounds <= room:
        return list(range(1, rounds + 1))
    return sorted({1 + round(step * (rounds - 1) / (room - 1)) for step in range(room)})


def to_json(audit: RoundsAudit) -> dict[str, Any]:
    """Strict JSON, in the manner of ``findings.json``."""
    return {"format": FORMAT, **strict(TypeAdapter(RoundsAudit).dump_python(audit, mode="json"))}


def publish(audit: RoundsAudit, folder: Path) -> Path:
    """Write ``figures/rounds.*``, ``rounds.html`` and, last, ``rounds.json``.

    Returns:
        The path of ``rounds.html``.

    Raises:
        StorageError: no space or no permission.
    """
    drawing = write_figure(privacy_and_utility(audit), "rounds", folder)
    written = write_text(folder / "rounds.html", _page(audit, drawing))
    write_json(folder / "rounds.json", to_json(audit))
    return written


def _page(audit: RoundsAudit, drawing: str) -> str:
    return page(
        "rounds.html.j2",
        {
            "audit": audit,
            "headline": headline(audit),
            "qualifiers": qualifiers(audit.claims[-1]),
            "answer": answer(audit),
            "caveat": _CAVEAT if verdict(audit) is Verdict.CONSISTENT else "",
            "rounded": ROUNDED,
            "exact_rows": [*claimed(audit), *table(audit)],
            "sampled": {_ESTIMATORS[name]: table(audit, name) for name in ("monte_carlo", "variance_reduced")},
            "vanishing": _vanishing(audit),
            "level": percent(1 - audit.alpha),
            "replicas": replicas(audit),
            "ideas": {name: ATTACKS[name].idea for name in audit.paths},
            "utility": _utility_rows(audit),
            "verdict": verdict(audit).value,
            "contradicted": contradicted(audit),
            "figure": picture(drawing, "rounds", "Privacy and utility over rounds"),
        },
    )


def _vanishing(audit: RoundsAudit) -> bool:
    """Whether the variance-reduced bound of some attack comes to nothing after some round."""
    return any(
        largest(paths, claim.rounds, "variance_reduced") < _VANISHING
        for paths in audit.paths.values()
        for claim in audit.claims
    )


def _utility_rows(audit: RoundsAudit) -> list[dict[str, str]]:
    """Ceiling, floor and every round: mean and spread over seeds."""
    if not audit.utility:
        return []
    against = audit.utility[0].references
    rows = [
        {
            "": "other real users (ceiling)",
            "MAUVE": _mean(against.mauve_ceiling),
            "accuracy": _mean(against.accuracy_real),
        },
        *(
            {"": f"round {found.rounds}", "MAUVE": _mean(found.mauve), "accuracy": _mean(found.accuracy)}
            for found in audit.utility
        ),
        {"": "round-zero bank (floor)", "MAUVE": _mean(against.mauve_floor), "accuracy": _mean(against.accuracy_floor)},
    ]
    if against.majority is not None:
        rows.append({"": "majority class", "MAUVE": "–", "accuracy": f"{against.majority:.3f}"})
    return rows


def _mean(found: Repeated | None) -> str:
    return "–" if found is None else f"{found.mean:.3f} ± {found.spread:.3f}"


def _replicas_table(audit: RoundsAudit, columns: list[int]) -> RenderableType:
    from rich.table import Table

    shown = Table(
        title="Adaptive replicas: banks grown from the audited releases themselves",
        caption="ε ≥ after so many rounds; formal, conditional on no bank, each column at its own level",
        title_justify="left",
        caption_justify="left",
        header_style="bold",
    )
    names = ["attack", "runs", *map(str, columns)]
    for name in names:
        shown.add_column(name, justify="left" if name == "attack" else "right", no_wrap=True)
    for row in replicas(audit):
        shown.add_row(*(row[name] for name in names))
    return shown


def _utility_table(audit: RoundsAudit) -> RenderableType:
    from rich.table import Table

    size = audit.utility[0].references.size
    shown = Table(
        title="Utility of the synthetic texts, against public users",
        caption=f"{size} texts on either side; mean and standard deviation over seeds; heuristic",
        title_justify="left",
        caption_justify="left",
        header_style="bold",
    )
    for name in ("", "MAUVE", "accuracy"):
        shown.add_column(name, justify="right" if name else "left", no_wrap=True)
    for row in _utility_rows(audit):
        shown.add_row(*row.values())
    return shown
