"""What the selftest says: detection by bug, false alarms by test, and whether both are as they must be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scipy.stats import binom

from coalmine.auditor import clopper_pearson
from coalmine.deploy.selftest.experiment import CORRECT, SWAPPED, Repetition
from coalmine.deploy.selftest.plan import Bug, Group, Plan

_SIMULATION_ERROR = 1e-4
"""A count of false alarms is too large if a test at its level gave it with a probability below this."""
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Rate:
    """How often something happened.

    Attributes:
        low, high: two-sided Clopper-Pearson interval of 95 %.
    """

    times: int
    of: int
    low: float
    high: float

    @property
    def share(self) -> float:
        return self.times / self.of


@dataclass(frozen=True)
class FalseAlarms:
    """One test on the correct mechanism. ``nominal``: no more alarms than the level and simulation error explain."""

    test: str
    rate: Rate
    nominal: bool


@dataclass(frozen=True)
class Detection:
    """One bug.

    Attributes:
        named: by the test named for it (refusals for a swapped bank; ``None`` where no test is named).
        by_bound, by_two_sided: by any test of that kind, for comparison: several tests at their full level each, to be
            compared with the same on the correct mechanism.
        found: often enough by the test named for it; ``True`` for invisible ones that behave as the reason says.
    """

    bug: Bug
    named: Rate | None
    by_bound: Rate | None
    by_two_sided: Rate | None
    found: bool


@dataclass(frozen=True)
class Verdict:
    """The whole selftest. ``correct_by_...``: alarms of any test of that kind on the correct mechanism."""

    seed: int
    repetitions: int
    level: float
    required: float
    detections: tuple[Detection, ...]
    false_alarms: tuple[FalseAlarms, ...]
    correct_by_bound: Rate
    correct_by_two_sided: Rate

    @property
    def passed(self) -> bool:
        return all(one.found for one in self.detections) and all(one.nominal for one in self.false_alarms)


def judge(plan: Plan, seed: int, repetitions: Sequence[Repetition]) -> Verdict:
    """Count and compare with the plan."""
    correct = [repetition.alarms[CORRECT] for repetition in repetitions]
    false_alarms = []
    for test in plan.tests:
        rate = _rate(alarms[test] for alarms in correct)
        likely = float(binom.sf(rate.times - 1, rate.of, plan.level)) >= _SIMULATION_ERROR
        false_alarms.append(FalseAlarms(test, rate, likely))
    detections = tuple(_detection(plan, bug, repetitions) for bug in plan.bugs)
    return Verdict(
        seed, len(repetitions), plan.level, plan.required, detections, tuple(false_alarms), *_any(plan, correct)
    )


def _detection(plan: Plan, bug: Bug, repetitions: Sequence[Repetition]) -> Detection:
    if bug.name == SWAPPED:
        refusals = _rate(repetition.refused for repetition in repetitions)
        return Detection(bug, refusals, None, None, refusals.times == refusals.of)
    alarms = [repetition.alarms[bug.name] for repetition in repetitions]
    bound, two_sided = _any(plan, alarms)
    if bug.test is None:
        return Detection(bug, None, bound, two_sided, bug.group is Group.INVISIBLE)
    named = _rate(one[bug.test] for one in alarms)
    return Detection(bug, named, bound, two_sided, named.share >= plan.required)


def _any(plan: Plan, alarms: Sequence[dict[str, bool]]) -> tuple[Rate, Rate]:
    """How often any bound, and how often any two-sided test, raised an alarm."""
    bound, two_sided = (
        _rate(any(one[test] for test in plan.tests if test.startswith(kinds)) for one in alarms)
        for kinds in (("bound/",), ("noise/", "means/"))
    )
    return bound, two_sided


def _rate(answers: Iterable[bool]) -> Rate:
    counted = list(answers)
    times, of = sum(counted), len(counted)
    gamma = (1 - _CONFIDENCE) / 2
    return Rate(
        times,
        of,
        float(clopper_pearson.lower(times, of, gamma)),
        float(clopper_pearson.upper(times, of, gamma)),
    )
