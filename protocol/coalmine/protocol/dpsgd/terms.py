"""What the server and the clients of a federated run agree on, from the flat settings that Flower hands to both.

Keys have the form ``filter.k``; those about data, models and who is there (``data.*``, ``partition.*``, ``model.*``,
``population.*``) concern clients alone and are not read here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from coalmine.protocol.dpsgd.fixed_point import fraction_bits
from coalmine.protocol.dpsgd.mechanism import DpSgd
from coalmine.protocol.dpsgd.optimiser import Adam, Optimiser, Sgd
from coalmine.protocol.dpsgd.schedule import FilterSchedule
from coalmine.protocol.errors import StudyError, nearest

_Word = TypeVar("_Word", bound=StrEnum)

Settings = Mapping[str, Any]
"""Strings, whole numbers, floats and booleans."""


class Mode(StrEnum):
    """GRADIENT: a round is one step of central DP-SGD on all clients' samples. LOCAL: each client takes noised steps of
    its own between rounds, and the server averages models with public weights."""

    GRADIENT = "gradient"
    LOCAL = "local"


class Scope(StrEnum):
    """CLIENT: each drops its own top k, and nobody learns which. FEDERATION: top k over all clients; the server then
    sees every active sample's id, label and signature, and must be trusted with them."""

    CLIENT = "client"
    FEDERATION = "federation"


@dataclass(frozen=True)
class Terms:
    """Everything about a run that can change its guarantee or its result, but data and model.

    Attributes:
        mechanism: in local mode, of each client; ``declared_size`` is then a client's public share of all data.
        steps: noised updates that one sample is exposed to.
        seed: decides batches and noise (simulated randomness: whoever knows it can recompute both).
        clients: how many take part. universe: sample ids are 0 ... universe - 1; public.
        local_steps: steps of a round; 1 in gradient mode.

    Raises:
        StudyError: a value out of its range, or values that do not fit.
    """

    mode: Mode
    mechanism: DpSgd
    steps: int
    optimiser: Optimiser
    filter: FilterSchedule | None
    scope: Scope
    seed: int
    clients: int
    universe: int
    local_steps: int = 1

    def __post_init__(self) -> None:
        for key, value, least in (("steps", self.steps, 1), ("clients", self.clients, 1), ("seed", self.seed, 0)):
            if value < least:
                raise StudyError(f"{value!r} is not allowed", where=f"training.{key}", remedy=f"needs {least} or more")
        if self.universe < 1:
            raise StudyError(f"{self.universe} sample ids", where="training.universe", remedy="needs 1 or more")
        if self.local_steps < 1 or self.steps % self.local_steps:
            raise StudyError(
                f"{self.local_steps} local steps a round, {self.steps} steps",
                where="training.local_steps",
                remedy="needs a divisor of training.steps",
            )
        if self.mode is Mode.GRADIENT and self.local_steps != 1:
            raise StudyError("a round is one step", where="training.local_steps", remedy="leave it at 1, or use local")
        if self.mode is Mode.LOCAL and self.scope is Scope.FEDERATION and self.filter is not None:
            raise StudyError("clients train alone", where="training.scope", remedy="use 'client' in local mode")
        off_beat = [step for step in self.filterings if step % self.local_steps]
        if off_beat:
            raise StudyError(
                f"the filter is due at step {off_beat[0]}, in the middle of a round",
                where="training.local_steps",
                remedy=f"needs a divisor of every filtering's step: {', '.join(map(str, self.filterings[:5]))}, ...",
            )

    @property
    def filterings(self) -> tuple[int, ...]:
        """The steps before which is filtered."""
        return () if self.filter is None else self.filter.steps(self.steps, self.mechanism.q)

    @property
    def rounds(self) -> int:
        return self.steps // self.local_steps

    @property
    def bits(self) -> int:
        """Of the fraction of sums."""
        return fraction_bits(self.universe)


def terms(settings: Settings) -> Terms:
    """The terms of a run.

    Raises:
        StudyError: a key is missing, of the wrong type or out of its range.
    """
    mode = _word(settings, "mode", Mode)
    clients, q = _number(settings, "clients", int), _number(settings, "q", float)
    declared = _number(settings, "declared_size", int)
    mechanism = DpSgd(
        q=q,
        sigma=_number(settings, "sigma", float),
        clip=_number(settings, "clip", float),
        delta=_number(settings, "delta", float),
        declared_size=max(1, declared // clients) if mode is Mode.LOCAL else declared,
    )
    rule = {
        key.removeprefix("filter."): value
        for key, value in settings.items()
        if key.startswith("filter.") and key != "filter.on"
    }
    if rule.get("last_epoch") == -1:
        rule["last_epoch"] = None  # such settings know no null
    return Terms(
        mode=mode,
        mechanism=mechanism,
        steps=_number(settings, "steps", int),
        optimiser=_optimiser(settings),
        filter=FilterSchedule.from_settings(rule) if settings.get("filter.on", False) else None,
        scope=_word(settings, "scope", Scope),
        seed=_number(settings, "seed", int),
        clients=clients,
        universe=_number(settings, "universe", int),
        local_steps=_number(settings, "local_steps", int),
    )


def _optimiser(settings: Settings) -> Optimiser:
    lr = _number(settings, "lr", float)
    match settings.get("optimiser", "sgd"):
        case "sgd":
            return Sgd(lr, _number(settings, "momentum", float))
        case "adam":
            return Adam(lr)
        case other:
            raise StudyError(f"{other!r} is not known", where="training.optimiser", remedy="known: adam, sgd")


def _number(settings: Settings, key: str, kind: type[Any]) -> Any:
    value = settings.get(key)
    if isinstance(value, bool) or not isinstance(value, int if kind is int else int | float):
        said = "is missing" if value is None else f"{value!r} is not a {'whole ' if kind is int else ''}number"
        raise StudyError(said, where=f"training.{key}", remedy="give one")
    return kind(value)


def _word(settings: Settings, key: str, kind: type[_Word]) -> _Word:
    value = settings.get(key)
    if value not in tuple(kind):
        raise StudyError(f"{value!r} is not known", where=f"training.{key}", remedy=nearest(str(value), kind))
    return kind(value)
