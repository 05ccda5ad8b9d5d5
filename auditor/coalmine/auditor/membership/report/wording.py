"""What the page says in sentences; every figure in them comes from the audit."""

from __future__ import annotations

from coalmine.auditor.membership.disparate import Disparity
from coalmine.auditor.membership.report.privacy_figures import FILTERED, formal, headline
from coalmine.auditor.membership.report.views import GRADIENT_CANARY
from coalmine.auditor.membership.result import Audited, MembershipAudit, Subject
from coalmine.auditor.report.wording import down, percent

_STAYS = 0.5
"""Of the reading without the filter. The same canary read on other models differs by as much (docs/filtering.md)."""
_SMALL, _FAR = 0.1, 2.0
"""A subgroup pays where the filter takes more than a tenth of it, and more than twice the share of another."""
_NOISE = 0.5
"""A GDP reading below this is what silence gives now and then."""


def answer(audit: MembershipAudit) -> tuple[str, ...]:
    """What was found, in a few plain sentences."""
    told = [
        f"The accounting promises ε ≤ {audit.claim.eps_pld_upper:.4f} for one record. The filter changes nothing in"
        " that promise: what it changes is what attacks can show."
    ]
    arms = {arm.name: arm for arm in audit.arms}
    if FILTERED in arms and len(arms) == 2:
        after, before = arms[FILTERED], next(arm for arm in audit.arms if arm.name != FILTERED)
        told.append(
            f"Test accuracy is {before.accuracy:.3f} without the filter and {after.accuracy:.3f} with it, which drops"
            f" {100 * after.lost:.1f} % of the private samples."
        )
    if audit.alarm is not None:
        return (audit.alarm, *told)
    return (*told, f"Verdict: {audit.verdict}. Bounds below the claim are no proof of it: other attacks may show more.")


def left(audit: MembershipAudit) -> tuple[str, ...]:
    """Which readings the filter leaves, as they were seen, and whom it costs; and what was not tried."""
    pairs = _pairs(audit)
    told = []
    for before, after in pairs:
        one, other = headline(before), headline(after)
        if one is not None and other is not None and other > max(_NOISE, _STAYS * one):
            told.append(
                f"{after.name}: the GDP reading (heuristic) is {down(one, 2)} without the filter and {down(other, 2)}"
                f" with it{_proved(after)}{_taken(after)}. {_seen(one, other)}"
            )
    told += [sentence for one in audit.disparate for sentence in _unfair(one)]
    if not any(after.name.startswith("group of") for _, after in pairs):
        told.append(
            "Groups in gradient space, sized just below what the filter takes, were not tried (training.audit.group)."
            " Published results show that the filter does not help against them (ε 27.26 with and without it)."
        )
    return tuple(told)


def _unfair(found: Disparity) -> list[str]:
    """Subgroups of which the filter takes a far larger share than of the one that loses least."""
    seen = found.impact
    least = min(one.mean for one in seen.dropped)
    of = "" if found.minority is None else f" (minority {100 * found.minority:g} %)"
    return [
        f"{gone.of}{of}: the filter drops {100 * gone.mean:.0f} % of its samples, against {100 * least:.0f} %"
        f" elsewhere; its accuracy goes from {before.mean:.3f} to {after.mean:.3f}."
        for gone, after, before in zip(seen.dropped, seen.accuracy, seen.accuracy_unfiltered, strict=True)
        if gone.mean > max(_SMALL, _FAR * least)
    ]


def fallen(audit: MembershipAudit) -> tuple[str, ...]:
    """Which readings fall to half or less, or to what silence gives."""
    return tuple(
        f"{after.name}: GDP reading (heuristic) from {down(one, 2)} to {down(other, 2)}"
        for before, after in _pairs(audit)
        if (one := headline(before)) is not None
        and (other := headline(after)) is not None
        and one > _NOISE
        and other <= max(_NOISE, _STAYS * one)
    )


def white_box(audit: MembershipAudit) -> tuple[str, ...]:
    """How long the gradient canary is with the filter, and whether its numbers are smaller there."""
    return tuple(_length(before, after) for before, after in _pairs(audit) if after.name == GRADIENT_CANARY)


def swept(found: Audited) -> str:
    """What the points differ in."""
    return f"{len(found.points)} studies that differ in {', '.join(found.keys)}"


def _pairs(audit: MembershipAudit) -> list[tuple[Subject, Subject]]:
    after = {one.name: one for arm in audit.arms if arm.name == FILTERED for one in arm.subjects}
    before = {one.name: one for arm in audit.arms if arm.name != FILTERED for one in arm.subjects}
    return [(before[name], one) for name, one in after.items() if name in before]


def _seen(one: float, other: float) -> str:
    """A reading above silence with the filter, against the one without it; no verdict, because neither proves any."""
    if _STAYS * other > one:
        return "The reading is higher with the filter."
    return "The filter leaves it within a factor of two of where it was; other models alone may change it as much."


def _length(before: Subject, after: Subject) -> str:
    smaller = _smaller(before, after)
    scale = next(
        (found for one in after.findings[0].evidence if (found := one.details.get("clip_over_length")) is not None),
        None,
    )
    numbers = "its numbers are smaller there" if smaller else "its numbers are not smaller there"
    if scale is None:
        return f"With the filter the gradient canary was taken in some models: no exact epsilon is told, and {numbers}."
    if scale <= 1:
        return f"With the filter the gradient canary is as long as without it, the whole clip; {numbers}."
    why = f"which is part of why {numbers}" if smaller else f"yet {numbers}"
    return f"With the filter the gradient canary is only {1 / scale:.2g} of the clip long, {why}."


def _smaller(before: Subject, after: Subject) -> bool:
    """Some number is smaller as it is printed, and none larger."""
    was = {one.method: one.mean for one in before.repeated}
    pairs = [(down(was[one.method], 2), down(one.mean, 2)) for one in after.repeated if one.method in was]
    return any(a != b for a, b in pairs) and all(float(b) <= float(a) for a, b in pairs)


def _proved(subject: Subject) -> str:
    bound = formal(subject)
    return f" (formal bound {down(bound, 2)})" if bound is not None else ""


def _taken(subject: Subject) -> str:
    if subject.drops or subject.dropped_in is None:
        return ""
    return f"; the filter took {percent(subject.dropped_in)} of its members"
