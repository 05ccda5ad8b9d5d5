"""The plan of the selftest, read from ``bugs.yaml``, which was written before the first run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from typing import Any

import yaml

from coalmine.protocol.privacy import Mechanism


class Group(StrEnum):
    """What a bug does, and so what can reveal it."""

    LEAKS = "leaks"
    """The bound must exceed the claim."""
    WRONG = "wrong"
    """A two-sided audit must find it."""
    INVISIBLE = "invisible"
    """No release shows it."""


@dataclass(frozen=True)
class Bug:
    """One thing that is broken.

    Attributes:
        where: the part that is replaced by a broken one. test: must find it; ``None`` where nothing can.
        reason: why nothing can.
    """

    name: str
    group: Group
    where: str
    what: str
    test: str | None
    reason: str = ""


@dataclass(frozen=True)
class Layout:
    """Size of the world (see ``bugs.yaml``)."""

    users: int
    records: int
    rounds: int
    candidates: int
    focused: int
    spread: int


@dataclass(frozen=True)
class Plan:
    """What is tried, how often, and what is expected.

    Attributes:
        level: share of alarms that a test may raise on the correct mechanism. required: share of repetitions in which
            a bug must be found. tests: description by name.
    """

    seed: int
    repetitions: int
    level: float
    required: float
    layout: Layout
    mechanism: Mechanism
    tests: dict[str, str]
    bugs: tuple[Bug, ...]


def read_plan() -> Plan:
    """The plan as it was committed."""
    table: dict[str, Any] = yaml.safe_load(files(__package__).joinpath("bugs.yaml").read_text(encoding="utf-8"))
    world = table["world"]
    knobs = {key: world.pop(key) for key in ("q", "sigma", "clip", "delta")}
    return Plan(
        seed=table["seed"],
        repetitions=table["repetitions"],
        level=table["level"],
        required=table["required"],
        layout=Layout(**world),
        mechanism=Mechanism(**knobs, max_records=world["records"]),
        tests=table["tests"],
        bugs=tuple(Bug(**{**bug, "group": Group(bug["group"])}) for bug in table["bugs"]),
    )
