"""A sweep: a study file whose section ``sweep`` names keys and the values each takes; every combination is a point.

sweep:
  privacy.sigma: [0.5, 1, 2]
  privacy.q: [0.05, 0.1]

A value may be several keys of a section that change together:

sweep:
  bank: [{source: labels}, {source: auxiliary}, {file: later.parquet}]
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coalmine.deploy.study import Study
from coalmine.deploy.study_file import anchor, build_study, read_values, set_key
from coalmine.protocol.errors import StudyError

_MOST_POINTS = 10_000


@dataclass(frozen=True)
class Point:
    """One combination.

    Attributes:
        values: by swept key.
    """

    values: dict[str, Any]
    study: Study


def read_points(path: Path, overrides: Sequence[str] = ()) -> tuple[Point, ...]:
    """The points of a study file, in the order of the file, the last key varying fastest. Empty where nothing is swept.

    Args:
        overrides: as for ``read_study``; none may name a swept key.

    Paths of inputs are relative to the file, as for ``read_study``.

    Raises:
        StudyError: as for ``read_study``; a key without a list of values, the same value twice, or too many points.
    """
    values = read_values(path)
    sweep = values.pop("sweep", None)
    if sweep is None:
        return ()
    where = f"{path}, sweep"
    if not isinstance(sweep, dict) or not sweep:
        raise StudyError("a sweep maps keys to lists of values", where=where, remedy="e.g. privacy.sigma: [0.5, 1]")
    for key, choices in sweep.items():
        if not isinstance(choices, list) or not choices:
            raise StudyError("needs a list of values", where=f"{where}: {key}")
        if len({repr(choice) for choice in choices}) < len(choices):
            raise StudyError("a value occurs twice", where=f"{where}: {key}")
    _check_overrides(sweep, overrides)
    combinations = list(itertools.islice(itertools.product(*sweep.values()), _MOST_POINTS + 1))
    if len(combinations) > _MOST_POINTS:
        raise StudyError(f"more than {_MOST_POINTS:,} points", where=where, remedy="sweep fewer values")
    return tuple(
        _point(values, dict(zip(sweep, chosen, strict=True)), overrides, where, path.parent) for chosen in combinations
    )


def _point(values: dict[str, Any], chosen: dict[str, Any], overrides: Sequence[str], where: str, folder: Path) -> Point:
    own = copy.deepcopy(values)
    for key, value in _settings(chosen):
        set_key(own, key, value, where)
        anchor(own, key, folder)
    named = ", ".join(f"{key} = {value}" for key, value in chosen.items())
    return Point(chosen, build_study(own, overrides, where=f"{where}, point {named}"))


def _check_overrides(sweep: dict[str, Any], overrides: Sequence[str]) -> None:
    """An override would undo what the sweep sets, and the points would not be what they are called.

    Raises:
        StudyError: one names a swept key, or a section that holds one.
    """
    swept = {name for key, choices in sweep.items() for choice in choices for name, _ in _settings({key: choice})}
    for override in overrides:
        key = override.partition("=")[0]
        if any(name == key or name.startswith(f"{key}.") or key.startswith(f"{name}.") for name in swept):
            raise StudyError(f"{key} is swept", where=f"--set {override}", remedy="change the sweep in the file")


def _settings(chosen: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every single key that a combination sets."""
    for key, value in chosen.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{inner}", given) for inner, given in value.items())
        else:
            yield str(key), value
