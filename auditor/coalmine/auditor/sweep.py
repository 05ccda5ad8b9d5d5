"""What a sweep shows: audited rounds that differ in a few keys."""

from __future__ import annotations

from dataclasses import dataclass

from coalmine.auditor.result import RoundAudit

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
    """

    name: str
    keys: tuple[str, ...]
    points: tuple[SweepPoint, ...]
    seconds: dict[str, float]
