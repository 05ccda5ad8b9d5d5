"""Numbers and words that no run can have written: a record that holds one was damaged or made up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from coalmine.protocol.errors import StorageError
from coalmine.protocol.unicode import is_unicode

_FREE = frozenset({"facts", "values", "details", "seconds"})
"""Parts of a record whose keys are the run's own."""

_EPS = "needs an epsilon >= 0"
_SHARE = "needs a number in (0, 1)"
_COUNT = "needs a count from 1"


def _epsilon(value: float) -> bool:
    return value >= 0


def _open(value: float) -> bool:
    return 0 < value < 1


def _counted(value: float) -> bool:
    return value >= 1


_NUMBERS: dict[str | tuple[str, str], tuple[Callable[[float], bool], str]] = {
    **dict.fromkeys(
        ("eps", "eps_lower", "eps_prv", "eps_pld_lower", "eps_pld_upper", "eps_one_sided", "claimed_eps"),
        (_epsilon, _EPS),
    ),
    **dict.fromkeys((("evidence", "confidence"), "alpha"), (_open, _SHARE)),
    **dict.fromkeys(("rounds", "models", "repetitions"), (_counted, _COUNT)),
    "confidence": (lambda value: 0 < value <= 1, "needs a number in (0, 1]"),  # an exact curve has no doubt
    "delta": (lambda value: 0 <= value < 1, "needs a probability in [0, 1)"),
    "q": (lambda value: 0 < value <= 1, "needs a rate in (0, 1]"),
    "sigma": (lambda value: value > 0, "needs a noise multiplier > 0"),
}
_INFINITE = frozenset({"eps_pld_upper", "eps_prv"})
"""Epsilons that accounting may leave open: infinite, or not a number."""
_FILLED = frozenset({"arms", "attacks"})


def require_plausible(document: Any) -> None:
    """Refuse a document that holds what no run writes, whatever its format.

    Raises:
        StorageError: naming the JSON pointer.
    """
    for pointer, key, value in _entries(document, ""):
        if isinstance(value, str) and not is_unicode(value):
            raise _damaged("half a character", pointer, "needs text")
        if isinstance(value, int | float) and not isinstance(value, bool) and key in _NUMBERS:
            holds, needs = _NUMBERS["evidence", key] if _of_evidence(pointer, key) else _NUMBERS[key]
            if not holds(value) or not _finite(value):
                raise _damaged(f"{_brief(value)} is impossible", pointer, needs)
        if isinstance(value, list) and not value and key in _FILLED:
            raise _damaged("nothing is there", pointer, "needs at least one")
    infinite = document.get("not_finite") if isinstance(document, dict) else None
    for pointer, said in infinite.items() if isinstance(infinite, dict) else ():
        key = str(pointer).rpartition("/")[2]
        if key in _NUMBERS and not (key in _INFINITE and said in ("inf", "nan")):
            raise _damaged(f"{said!r} is impossible", str(pointer), _NUMBERS[key][1])


def _of_evidence(pointer: str, key: str) -> bool:
    return key == "confidence" and "/evidence/" in pointer


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False


def _entries(node: Any, pointer: str) -> Iterator[tuple[str, str, Any]]:
    """Every part: where, the key it stands under, and itself. Keys are words too."""
    if isinstance(node, dict):
        for key, value in node.items():
            below = f"{pointer}/{key}"
            yield f"{pointer}/", "", key
            yield below, key, value
            yield from _words(value, below) if key in _FREE else _entries(value, below)
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield f"{pointer}/{number}", "", value
            yield from _entries(value, f"{pointer}/{number}")


def _words(node: Any, pointer: str) -> Iterator[tuple[str, str, Any]]:
    """Of a part with keys of its own: text alone."""
    return ((place, "", value) for place, _, value in _entries(node, pointer) if isinstance(value, str))


def _brief(value: float) -> str:
    return f"{value:.6g}" if _finite(value) else "a number without end"


def _damaged(what: str, pointer: str, remedy: str) -> StorageError:
    where = pointer.encode("ascii", "backslashreplace").decode()
    return StorageError(f"the record is damaged: {what}", where=where, remedy=remedy)
