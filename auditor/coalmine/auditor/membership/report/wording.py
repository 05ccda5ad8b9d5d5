"""What the page says in sentences; every figure in them comes from the audit."""

from __future__ import annotations

from coalmine.auditor.membership.disparate import Disparity
from coalmine.auditor.membership.report.privacy_figures import FILTERED, formal, headline
from coalmine.auditor.membership.result import Audited, MembershipAudit, Subject
from coalmine.auditor.report.wording import down, percent

_STAYS = 0.5
"""Of the reading without the filter: what is left above it counts as not helped."""
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


def failures(audit: MembershipAudit) -> tuple[str, ...]:
    """Where the filter does not help, said plainly; and what was not tried."""
    pairs = _pairs(audit)
    told = []
    for before, after in pairs:
        one, other = headline(before), headline(after)
        if one is not None and other is not None and other > max(_NOISE, _STAYS * one):
            told.append(
                f"{after.name}: the GDP reading (heuristic) is {down(one, 2)} without the filter and {down(other, 2)}"
                f" with it{_proved(after)}{_taken(after)}. The filter does not help here."
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


def helped(audit: MembershipAudit) -> tuple[str, ...]:
    """Where it does."""
    return tuple(
        f"{after.name}: GDP reading (heuristic) from {down(one, 2)} to {down(other, 2)}"
        for before, after in _pairs(audit)
        if (one := headline(before)) is not None
        and (other := headline(after)) is not None
        and one > _NOISE
        and other <= max(_NOISE, _STAYS * one)
    )


def swept(found: Audited) -> str:
    """What the points differ in."""
    return f"{len(found.points)} studies that differ in {', '.join(found.keys)}"


def _pairs(audit: MembershipAudit) -> list[tuple[Subject, Subject]]:
    after = {one.name: one for arm in audit.arms if arm.name == FILTERED for one in arm.subjects}
    before = {one.name: one for arm in audit.arms if arm.name != FILTERED for one in arm.subjects}
    return [(before[name], one) for name, one in after.items() if name in before]


def _proved(subject: Subject) -> str:
    bound = formal(subject)
    return f" (formal bound {down(bound, 2)})" if bound is not None else ""


def _taken(subject: Subject) -> str:
    if subject.drops or subject.dropped_in is None:
        return ""
    return f"; the filter took {percent(subject.dropped_in)} of its members"
