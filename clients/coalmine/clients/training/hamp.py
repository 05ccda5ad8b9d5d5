"""HAMP, the membership-inference defence that is compared with (Chen and Pattabiraman, NDSS 2024). No formal promise.

Training: soft labels of high entropy. Serving: each confidence vector is replaced by one of a random input, rearranged
so that the order of the classes, and with it the predicted label, stays.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

Array = NDArray[np.float64]


def soft_label(classes: int, gamma: float) -> tuple[float, float]:
    """(p, r): the true class gets p, every other one r, with the largest p whose entropy is at least gamma * log(c)."""
    wanted = gamma * math.log(classes)
    low, high = 1 / classes, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _entropy(middle, classes) >= wanted else (low, middle)
    return low, (1 - low) / (classes - 1)


def masked(logits: Array, reference: Array) -> Array:
    """Confidences that say no more than the order of the classes.

    Args:
        logits: (n, c) of the queries. reference: (n, c) of random inputs under the same model.

    Returns:
        (n, c) the reference's confidences, rearranged into each query's order.
    """
    place = np.argsort(np.argsort(logits, axis=1, kind="stable"), axis=1, kind="stable")
    return np.take_along_axis(np.sort(softmax(reference, axis=1), axis=1), place, axis=1)


def _entropy(p: float, classes: int) -> float:
    rest = (1 - p) / (classes - 1)
    return -sum(mass * math.log(mass) * count for mass, count in ((p, 1), (rest, classes - 1)) if mass > 0)
