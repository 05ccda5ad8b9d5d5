"""One row: a mechanism under audit, an attack on it, and the best number of each kind that the attack has shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from coalmine.protocol.finding import Evidence
from coalmine.protocol.privacy import Adjacency, Assurance

NOT_MEASURED = "–"

ABOVE_ZERO_IN_SILENCE = frozenset({"multiple_hypothesis", "onion/multiple_hypothesis", "one_run/gaussian"})
"""Readings that are well above 0 when nothing leaks (docs/filtering.md): the largest would always be theirs."""


class Kind(StrEnum):
    """What was audited."""

    PE = "PE vote release"
    DP_SGD = "DP-SGD"
    FILTERED = "DP-SGD with filter"
    SYNTHETIC = "synthetic data"


@dataclass(frozen=True)
class Setting:
    """What an epsilon is about. Numbers of different settings share neither a table nor an axis.

    Attributes:
        unit: whose presence; "group of 300 records" where an attack is about many at once.
    """

    unit: str
    adjacency: Adjacency
    delta: float


@dataclass(frozen=True)
class Promise:
    """A claimed epsilon.

    Attributes:
        eps: >= 0, infinite where the accounting promises nothing.
        assurance: of the accounting; ``None`` where the claim was told to the audit and nobody computed it.
    """

    eps: float
    assurance: Assurance | None


@dataclass(frozen=True)
class Bound:
    """The largest number of one kind.

    Attributes:
        eps: >= 0.
        level: confidence of this number by itself, ``None`` where nothing was sampled or nothing is proved. An exact
            epsilon has one where its noise was measured: it is taken at the end of the noise's interval.
        chosen_from: how many numbers it is the largest of.
    """

    eps: float
    method: str
    level: float | None
    chosen_from: int

    @property
    def level_of_choice(self) -> float | None:
        """Confidence although the largest was picked (union bound); 0 where that leaves nothing."""
        return None if self.level is None else max(0.0, 1 - self.chosen_from * (1 - self.level))


@dataclass(frozen=True)
class Tightness:
    """A proven number as a share of the claim, and how it is proven."""

    share: float
    assurance: Assurance


@dataclass(frozen=True)
class Row:
    """One attack on one mechanism. ``None`` was not measured: it is not 0.

    Attributes:
        study: its name, with the swept values where it is a point of a sweep.
        canary: whose presence is tested, in words.
        mechanism: its public parameters, and whom its claim holds against where the attack sees less.
        attacker: what the attack sees; a dash where none was run.
        note: what a reader must know of this row alone, or empty.
        contradicted: the verdict contradicts the claim.
    """

    study: str
    kind: Kind
    mechanism: str
    attacker: str
    attack: str
    canary: str
    setting: Setting
    claim: Promise | None
    exact: Bound | None
    formal: Bound | None
    heuristic: Bound | None
    verdict: str
    contradicted: bool
    note: str = ""

    @property
    def tightness(self) -> Tightness | None:
        """Of the exact epsilon, or of the formal bound where there is none; ``None`` without a claim to divide by."""
        if self.claim is None or not 0 < self.claim.eps < float("inf"):
            return None
        for bound, assurance in ((self.exact, Assurance.EXACT), (self.formal, Assurance.FORMAL)):
            if bound is not None:
                return Tightness(bound.eps / self.claim.eps, assurance)
        return None


def named(study: str, values: Mapping[str, object]) -> str:
    """A point of a sweep by what it differs in."""
    if not values:
        return study
    told = ", ".join(f"{key.rpartition('.')[2]} = {value}" for key, value in values.items())
    return f"{study} ({told})"


def largest(evidence: Iterable[Evidence], assurance: Assurance, level: float | None = None) -> Bound | None:
    """The largest evidence of one assurance; ``None`` where there is none.

    Args:
        level: of every number by itself; ``None``: each says its own, and the lowest of them counts for the choice.
    """
    found = [one for one in evidence if one.assurance is assurance and one.method not in ABOVE_ZERO_IN_SILENCE]
    if not found:
        return None
    best = max(found, key=lambda one: one.eps_lower)
    levels = [one.confidence for one in found if one.confidence is not None]
    own = level if level is not None else min(levels, default=None)
    return Bound(best.eps_lower, best.method, None if assurance is Assurance.HEURISTIC else own, len(found))


def by_setting(rows: Iterable[Row]) -> dict[Setting, tuple[Row, ...]]:
    """Rows that may stand beside each other, settings in order of appearance."""
    groups: dict[Setting, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.setting, []).append(row)
    return {setting: tuple(found) for setting, found in groups.items()}
