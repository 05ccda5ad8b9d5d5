"""What a sweep shows: audited rounds that differ in a few keys."""

from __future__ import annotations

from dataclasses import dataclass

from coalmine.auditor.result import RoundAudit
from coalmine.protocol.errors import StudyError

Value = str | int | float | bool | None
"""What a swept key can be set to; anything else is shown as text."""


@dataclass(frozen=True)
class SweepPoint:
    """One combination of values, by key, and the audit under it."""

    values: dict[str, Value]
    audit: RoundAudit


@dataclass(frozen=True)
class Sweep:
    """All points of a sweep.

    Attributes:
        name: the study's. keys: the swept keys, in the order of the file.
        points: every combination, the last key varying fastest.
        seconds: wall-clock seconds by stage.

    Raises:
        StudyError: no point, no key, or a point without a value for every key.
    """

    name: str
    keys: tuple[str, ...]
    points: tuple[SweepPoint, ...]
    seconds: dict[str, float]

    def __post_init__(self) -> None:
        if not self.points or not self.keys:
            raise StudyError("nothing was swept", where=self.name, remedy="needs one key and one point at least")
        for point in self.points:
            if tuple(point.values) != self.keys:
                raise StudyError(
                    f"a point has values for {', '.join(point.values) or 'nothing'}",
                    where=self.name,
                    remedy=f"needs one for each of {', '.join(self.keys)}",
                )
