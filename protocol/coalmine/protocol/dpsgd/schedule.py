"""When is filtered and how much: fixed and public before the run. Never how many samples are left or dropped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from coalmine.protocol.dpsgd.filter import Reach
from coalmine.protocol.dpsgd.mechanism import first_step
from coalmine.protocol.dpsgd.signatures import Signature
from coalmine.protocol.errors import StudyError, nearest

_WARN_ABOVE, _REFUSE_ABOVE = 0.25, 0.5
_COUNTING = ("left", "remain", "dropped", "budget", "until", "count", "fraction", "share", "ratio", "quota", "size")


@dataclass(frozen=True)
class FilterSchedule:
    """Filterings at the beginning of epochs ``first_epoch``, ``first_epoch + every``, ... up to ``last_epoch``.

    Attributes:
        k: samples dropped at each filtering (of each class, or of all), >= 1.
        reach: per class or global.
        every: epochs between filterings, >= 1.
        first_epoch: >= 0.
        last_epoch: the last epoch that may begin with a filtering; ``None`` for the whole run.
        signature: what ranks the samples.
        window: past noised updates that ``direction_uniqueness`` looks at, >= 1.
        directions: public random directions of ``projection_variability``, >= 2.

    Raises:
        StudyError: a value out of its range.
    """

    k: int = 5
    reach: Reach = Reach.PER_CLASS
    every: int = 1
    first_epoch: int = 0
    last_epoch: int | None = None
    signature: Signature = Signature.GRAD_L2
    window: int = 10
    directions: int = 16

    def __post_init__(self) -> None:
        for name, least in (("k", 1), ("every", 1), ("first_epoch", 0), ("window", 1), ("directions", 2)):
            if getattr(self, name) < least:
                raise StudyError(
                    f"{getattr(self, name)!r} is not allowed", where=f"filter.{name}", remedy=f"needs at least {least}"
                )
        if self.last_epoch is not None and self.last_epoch < self.first_epoch:
            raise StudyError(
                f"{self.last_epoch} lies before the first epoch {self.first_epoch}",
                where="filter.last_epoch",
                remedy="needs an epoch from first_epoch on",
            )

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> FilterSchedule:
        """A schedule from the keys of a study file.

        Raises:
            StudyError: an unknown key; one that would let the schedule depend on the data is refused with the reason.
        """
        known = {field.name for field in fields(cls)}
        for key in settings:
            if key in known:
                continue
            if any(word in key.lower() for word in _COUNTING):
                raise StudyError(
                    "a filter schedule must not depend on how many samples are left or were dropped: two neighbouring "
                    "data sets could then differ by a whole filtering, and the privacy claim would not hold",
                    where=f"filter.{key}",
                    remedy="fix the filterings beforehand with k, every, first_epoch and last_epoch",
                )
            raise StudyError("this key is not known", where=f"filter.{key}", remedy=nearest(key, known))
        made = dict(settings)
        for name, kind in (("reach", Reach), ("signature", Signature)):
            if name in made and made[name] not in list(kind):
                raise StudyError(
                    f"{made[name]!r} is not known", where=f"filter.{name}", remedy=nearest(str(made[name]), kind)
                )
            if name in made:
                made[name] = kind(made[name])
        for field in fields(cls):
            value = made.get(field.name, 1)
            if field.name in ("reach", "signature") or (value is None and field.name == "last_epoch"):
                continue
            if not isinstance(value, int) or isinstance(value, bool):
                raise StudyError(f"{value!r} is not a whole number", where=f"filter.{field.name}", remedy="give one")
        return cls(**made)

    def epochs(self, steps: int, q: float) -> tuple[int, ...]:
        """The epochs that begin with a filtering in a run of ``steps`` steps."""
        found, epoch = [], self.first_epoch
        while first_step(epoch, q) < steps and (self.last_epoch is None or epoch <= self.last_epoch):
            found.append(epoch)
            epoch += self.every
        return tuple(found)

    def steps(self, steps: int, q: float) -> tuple[int, ...]:
        """The steps before which is filtered, ascending."""
        return tuple(first_step(epoch, q) for epoch in self.epochs(steps, q))

    def largest_drop(self, steps: int, q: float, classes: int, clients: int = 1) -> int:
        """The most samples that can go in a run, from public numbers alone.

        Args:
            clients: how many filter on their own (1 where one party filters for all).
        """
        groups = classes if self.reach is Reach.PER_CLASS else 1
        return self.k * groups * clients * len(self.epochs(steps, q))


def check_drop(largest: int, declared_size: int, *, force: bool = False) -> str | None:
    """A warning where a schedule can drop more than a quarter of the declared data, decided before the run.

    Raises:
        StudyError: it can drop more than half and ``force`` is not set.
    """
    share = largest / declared_size
    if share <= _WARN_ABOVE:
        return None
    said = f"the filter can drop {largest} of {declared_size} declared samples ({share:.0%})"
    remedy = "lower filter.k, raise filter.every or set an earlier filter.last_epoch"
    if share > _REFUSE_ABOVE and not force:
        raise StudyError(said, where="filter", remedy=f"{remedy}; or force it")
    return f"{said}: {remedy}"
