"""The last point at which a monotone statement still holds."""

from __future__ import annotations

from collections.abc import Callable

_HALVINGS = 200


def last_true(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Where a statement that is true first and false later turns false, to the last float (or to high / 2^200).

    Args:
        holds: true at ``low``; once false it stays false.
        low, high: the bracket, low <= high.

    Returns:
        A point where ``holds`` was seen to be true, next to one where it was not; ``high`` if it holds there too.
    """
    if holds(high):
        return high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
