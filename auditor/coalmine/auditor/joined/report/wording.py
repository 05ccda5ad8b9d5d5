"""What page, table and figure say in the same words."""

from __future__ import annotations

from collections.abc import Sequence

from coalmine.auditor.disclosure.result import DisclosureVerdict
from coalmine.auditor.joined.row import NOT_MEASURED, Bound, Kind, Promise, Row, Setting, Tightness, by_setting
from coalmine.auditor.report.wording import brief, down, fixed, percent

HOW_TO_READ = (
    "Every table is about one kind of epsilon: one privacy unit, one adjacency, one δ. Numbers of different tables are"
    " about different things and are never compared here.",
    "claim: the pessimistic end of the accounting (PLD), or a number that the audit was told. exact: computed for the"
    " modelled mechanism; where its noise was measured and not taken from the claim, the level below it is that of the"
    " noise's interval, at whose upper end it was taken. formal ≥: holds at the level beside it for this row alone, for"
    " the attack that was run. Where it is the largest of several bounds, the second level pays for that choice (union"
    " bound). Nothing corrects for the number of rows: the largest of many rows is not certified at its level.",
    "heuristic: the largest reading that proves nothing and decides nothing; readings that are far from 0 when nothing"
    " leaks (the best uncorrected ratio, also over samples; the Gaussian reading of one training run) are left out.",
    f"{NOT_MEASURED}: not measured. It is not 0. tightness: exact ε over the claim, or the formal"
    " bound over it where no exact ε is there.",
    "Exact and lower bounds are rounded down. No contradiction is no proof of privacy: other attacks may show more.",
)


def heading(setting: Setting) -> str:
    """What the numbers of a table are about."""
    return f"unit: {setting.unit} · neighbours: {setting.adjacency} · δ = {brief(setting.delta)}"


def answer(rows: Sequence[Row], records: int) -> tuple[str, ...]:
    """How much was joined, and which claims are contradicted."""
    groups = by_setting(rows)
    kinds = len(groups)
    told = [
        f"{len(rows)} rows from {_count(records, 'record')}, about {_count(kinds, 'kind')} of epsilon"
        + (", which are kept apart." if kinds > 1 else ".")
    ]
    against = [row for row in rows if row.contradicted]
    if against:
        named = "; ".join(f"{row.study}, {row.kind}, {row.attack}" for row in against)
        told.insert(0, f"CLAIM CONTRADICTED in {len(against)} of {len(rows)} rows: {named}.")
    else:
        told.append("No claim is contradicted. That is no proof of privacy: other attacks may show more.")
    leaking = list(dict.fromkeys(f"{row.study}, {row.attack}" for row in rows if _leaks(row)))
    if leaking:
        told.append(f"Synthetic data leaks, whatever was claimed: {'; '.join(leaking)}.")
    return tuple(told)


def subject(row: Row) -> str:
    """A row by what was audited and how it was attacked."""
    return f"{row.study} · {row.kind} · {row.attack}"


def claimed(claim: Promise | None) -> str:
    return "none made" if claim is None else fixed(claim.eps, 4)


def source(claim: Promise | None) -> str:
    """How much a claim rests on."""
    if claim is None:
        return ""
    return "told, not computed" if claim.assurance is None else claim.assurance.value


def bound(found: Bound | None) -> str:
    return NOT_MEASURED if found is None else down(found.eps)


def level(found: Bound | None) -> str:
    """Of the number by itself, and of the choice."""
    if found is None or found.level is None:
        return ""
    alone = f"{percent(found.level)}"
    if found.chosen_from == 1 or found.level_of_choice is None:
        return alone
    return f"{alone}; {percent(found.level_of_choice)} as the largest of {found.chosen_from}"


def exact_level(found: Bound | None) -> str:
    """The level of the noise's interval; empty where the noise was not measured, since nothing was sampled then."""
    told = level(found)
    return f"noise measured, {told}" if told else ""


def tight(found: Tightness | None) -> str:
    return NOT_MEASURED if found is None else f"{percent(found.share)} {found.assurance}"


def _leaks(row: Row) -> bool:
    return row.kind is Kind.SYNTHETIC and row.verdict.startswith(DisclosureVerdict.LEAKS.value)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
