"""From the flat keys ``population.*`` of a study or of a Flower run to conditions. The one reader of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from coalmine.clients.population.availability import Always, Availability, Diurnal, Independent
from coalmine.clients.population.conditions import Conditions, Deadline
from coalmine.clients.population.trace import read_trace
from coalmine.protocol.errors import StudyError, nearest

PREFIX: Final = "population."
AVAILABILITIES: Final = ("always", "independent", "diurnal", "trace")
DEFAULTS: Final[Mapping[str, str | float]] = {
    "availability": "always",
    "rate": 1.0,
    "lowest": 0.1,
    "highest": 0.9,
    "peak_hour": 2.0,
    "hours_per_round": 1.0,
    "zones": "",
    "trace": "",
    "dropout": 0.0,
    "deadline": 0.0,
    "median_delay": 1.0,
    "spread_delay": 1.0,
}
"""What a missing key means. Such settings know no null: no zones are all zones alike, no deadline waits for all."""


def conditions(settings: Mapping[str, Any]) -> Conditions:
    """How clients come and go.

    Args:
        settings: keys as in ``DEFAULTS`` after ``population.``; all other keys are not read. ``zones`` is a text such
            as "0:1,8:2", offsets from UTC in hours with weights; ``trace`` a path, read when availability is "trace".

    Raises:
        StudyError: an unknown key, a value of the wrong type or out of range; the key is named.
        DataError: a trace that cannot be read; its line and field are named.
    """
    known = _known(settings)
    late = known["deadline"] or None
    return Conditions(
        _availability(known),
        known["dropout"],
        None if late is None else Deadline(late, known["median_delay"], known["spread_delay"]),
    )


def written_zones(zones: tuple[tuple[float, float], ...]) -> str:
    """(offset, weight) pairs as the text that :func:`conditions` reads."""
    return ",".join(f"{offset!r}:{weight!r}" for offset, weight in zones)


def _known(settings: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = dict(DEFAULTS)
    for key, value in settings.items():
        name = key.removeprefix(PREFIX)
        if name == key:
            continue
        if name not in DEFAULTS:
            raise StudyError("this key is not known", where=key, remedy=nearest(name, DEFAULTS))
        text = isinstance(DEFAULTS[name], str)
        if isinstance(value, bool) or not isinstance(value, str if text else int | float):
            raise StudyError(f"{value!r} is not allowed", where=key, remedy=f"needs a {'text' if text else 'number'}")
        found[name] = value if text else float(value)
    return found


def _availability(known: Mapping[str, Any]) -> Availability:
    match known["availability"]:
        case "always":
            return Always()
        case "independent":
            return Independent(known["rate"])
        case "diurnal":
            day = known["lowest"], known["highest"], known["peak_hour"], known["hours_per_round"]
            return Diurnal(*day, _zones(known["zones"])) if known["zones"] else Diurnal(*day)
        case "trace":
            if not known["trace"]:
                raise StudyError("there is none", where="population.trace", remedy="name a CSV or JSONL file")
            return read_trace(Path(known["trace"]))
    raise StudyError(
        f"{known['availability']!r} is not known",
        where="population.availability",
        remedy=nearest(known["availability"], AVAILABILITIES),
    )


def _zones(text: str) -> tuple[tuple[float, float], ...]:
    try:
        pairs = [[float(number) for number in pair.split(":")] for pair in text.split(",")]
        return tuple((offset, weight) for offset, weight in pairs)
    except ValueError:
        raise StudyError(
            f"{text!r} is not allowed",
            where="population.zones",
            remedy="needs offsets from UTC and weights such as '0:1,8:2'",
        ) from None
