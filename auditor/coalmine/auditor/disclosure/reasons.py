"""A verdict in plain sentences, every figure in them from the tests."""

from __future__ import annotations

from collections.abc import Sequence

from coalmine.auditor.disclosure.assignment import Assignment
from coalmine.auditor.disclosure.power import POWER, TOLERATED, Power
from coalmine.auditor.disclosure.result import ClassTests, DeclaredTest, DisclosureVerdict
from coalmine.auditor.disclosure.settings import Settings
from coalmine.auditor.report.wording import brief, down, percent

FAR = 1e-3
"""So improbable a lack of matches in train is said aloud; it is no verdict."""


def reasons(
    name: str,
    verdict: DisclosureVerdict,
    tests: ClassTests,
    declared: Sequence[DeclaredTest],
    power: Power,
    assignment: Assignment,
    settings: Settings,
) -> tuple[str, ...]:
    """What was counted, what follows, and what does not."""
    counted = _counted(tests, assignment)
    match verdict:
        case DisclosureVerdict.LEAKS:
            return (counted, _rejected(declared, settings.alpha), *_bounds(tests, assignment, settings))
        case DisclosureVerdict.NO_EVIDENCE:
            told = *_odd(declared, settings.alpha), *_too_few(tests, assignment)
            return (counted, *told, _allowed(tests, power, settings, within_chance=not told))
        case DisclosureVerdict.TOO_LITTLE:
            told = *_odd(declared, settings.alpha), *_too_few(tests, assignment)
            return (counted, *told, _needed(tests, power, assignment))


def _counted(tests: ClassTests, assignment: Assignment) -> str:
    if tests.sweeps:
        first = tests.sweeps[0]
        match = first.match
        if match is None:
            whose = "exactly one user" if first.k == 1 else f"exactly {first.k} users"
            return f"Nothing that {whose} holds appears in the synthetic output."
        chance = brief(match.matches * assignment.p)
        holders = f"k = {first.k} user{'s' if first.k > 1 else ''}"
        return (
            f"{match.matches:,} matches: rare features, held by {holders} each, that appear in the synthetic output. "
            f"{match.train:,} are held in train, {match.phantoms:,} held out (phantoms); chance alone would put "
            f"{chance} in train."
        )
    guessed = tests.user_match
    if guessed is None:
        return "No user could be compared with the synthetic output."
    return (
        f"Of the {guessed.guesses:,} users to whom the synthetic output comes closest, {guessed.correct:,} are in "
        f"train; chance alone would give {brief(guessed.guesses * assignment.p)}."
    )


def _rejected(declared: Sequence[DeclaredTest], alpha: float) -> str:
    shown = "; ".join(f"{test.name}: p = {brief(test.p_holm, 2)}" for test in declared if test.rejects(alpha))
    return f"Without learning from train this would hardly happen ({shown}; corrected for all declared tests)."


def _bounds(tests: ClassTests, assignment: Assignment, settings: Settings) -> tuple[str, ...]:
    found = []
    if tests.sweeps and tests.sweeps[0].match is not None:
        found.append(("feature match", tests.sweeps[0].match.eps_lower, 0.0))
    if tests.user_match is not None:
        found.append(("user match", tests.user_match.eps_lower, tests.user_match.delta))
    shown = [
        f"{down(eps)} by {name}" + (f" at δ = {brief(delta)}" if delta else "") for name, eps, delta in found if eps > 0
    ]
    if not shown:
        return ()
    level = percent(1 - settings.alpha) + (" confidence each" if len(shown) > 1 else " confidence")
    return (
        f"The generator's ε is at least {' and at least '.join(shown)} "
        f"({level}, {assignment.adjacency}, {assignment.assurance}).",
    )


def _odd(declared: Sequence[DeclaredTest], alpha: float) -> tuple[str, ...]:
    away = ", ".join(test.name for test in declared if test.p_holm <= alpha and not test.towards_train)
    if not away:
        return ()
    return (
        f"Train and holdout differ ({away}), but train is not the closer one: they may not be samples of one kind.",
    )


def _too_few(tests: ClassTests, assignment: Assignment) -> tuple[str, ...]:
    match = tests.sweeps[0].match if tests.sweeps else None
    bound = 1.0 if match is None else match.fewer(assignment.p)
    if bound > FAR:
        return ()
    return (
        f"So few of them in train are not chance (p ≤ {brief(bound, 2)}, Hoeffding): are train and holdout swapped, or "
        "did users come into train in another way than declared? Until that is known, this verdict means nothing.",
    )


def _allowed(tests: ClassTests, power: Power, settings: Settings, *, within_chance: bool) -> str:
    what = "matches" if tests.sweeps else "these users"
    assert power.detectable is not None
    return (
        f"{'That is within chance. ' * within_chance}Had {percent(power.detectable)} of the {what} been there because "
        f"of training, the test would have noticed with {percent(POWER)} probability. The data still allow up to "
        f"{percent(power.excess_upper)} ({percent(1 - settings.alpha)} confidence)."
    )


def _needed(tests: ClassTests, power: Power, assignment: Assignment) -> str:
    what = "guesses" if tests.user_match is not None and not tests.sweeps else "matches"
    users = f"{'more than ' if power.at_least else 'about '}{_rounded(power.users_needed or 0):,} users"
    return (
        f"That is too little to judge: even if {percent(TOLERATED)} of the {what} were there because of training, the "
        f"test would probably miss it. It would take {users} in all (there are {assignment.users:,})."
    )


def _rounded(number: int) -> int:
    """Up, to two digits: an estimate is not shown to the last user."""
    unit = int("1" + "0" * max(0, len(str(number)) - 2))
    return -(-number // unit) * unit
