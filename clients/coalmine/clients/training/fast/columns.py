"""Loops over arrays whose columns are samples: what NumPy would do in several passes, or in an order of its choice.

No sample's result depends on how many others there are; NumPy adds up a single column in another order than one of
many. Models' columns lie side by side, model r's from ``bounds[r]`` to ``bounds[r + 1]``. Loops run over slices: a
loop with bounds of its own checks for negative places and takes no vector instructions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.compiled import compiled

Reals = NDArray[np.floating]
Bounds = NDArray[np.int64]


def totals(values: Reals) -> Reals:
    """(n,) sums of the (f, n) columns."""
    found = np.zeros(values.shape[1], values.dtype)
    _add(values, found)
    return found


def squared_norms(values: Reals) -> Reals:
    """(n,) of the (f, n) columns."""
    found = np.zeros(values.shape[1], values.dtype)
    _add_squares(values, found)
    return found


def squared_norms_of_rows(values: Reals) -> Reals:
    """(n,) of (n, f) rows."""
    found = np.empty(len(values), values.dtype)
    _squares_of_rows(values, found)
    return found


@compiled()
def through(gradient: Reals, active: Reals, tanh: bool) -> None:
    """From the (f, n) gradient by an activation's values to that by its arguments, in place; tanh or ReLU."""
    for i in range(active.shape[0]):
        for j in range(active.shape[1]):
            if tanh:
                gradient[i, j] -= gradient[i, j] * active[i, j] * active[i, j]
            elif not active[i, j] > 0:
                gradient[i, j] = 0


@compiled()
def shift(values: Reals, by: Reals, bounds: Bounds) -> None:
    """Adds row r of (R, f) ``by`` to every column of model r, in place."""
    for r in range(len(by)):
        for i in range(values.shape[0]):
            row, added = values[i, bounds[r] : bounds[r + 1]], by[r, i]
            for j in range(len(row)):
                row[j] += added


@compiled(fastmath={"reassoc", "contract"})
def scale(values: Reals, share: Reals, bounds: Bounds, total: Reals) -> None:
    """Scales column j by share j, in place; the sum of model r's columns goes into row r of (R, f) ``total``."""
    for r in range(len(total)):
        own = share[bounds[r] : bounds[r + 1]]
        for i in range(values.shape[0]):
            row, found = values[i, bounds[r] : bounds[r + 1]], values.dtype.type(0)
            for j in range(len(row)):
                scaled = row[j] * own[j]
                row[j] = scaled
                found += scaled
            total[r, i] = found


@compiled()
def _add(values: Reals, found: Reals) -> None:
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            found[j] += values[i, j]


@compiled()
def _add_squares(values: Reals, found: Reals) -> None:
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            found[j] += values[i, j] * values[i, j]


@compiled(fastmath={"reassoc", "contract"})
def _squares_of_rows(values: Reals, found: Reals) -> None:
    for j in range(len(found)):
        total = values.dtype.type(0)
        for i in range(values.shape[1]):
            total += values[j, i] * values[j, i]
        found[j] = total
