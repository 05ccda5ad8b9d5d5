"""Sums of clipped gradients in integers, so that they are the same numbers however the samples are shared out.

Each sample's clipped gradient is rounded toward zero on a grid of ``C / 2**bits``: its norm never grows beyond C, and
integers add up alike in any order. ``bits`` follows from public numbers alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coalmine.protocol.dpsgd.mechanism import DpSgd
from coalmine.protocol.errors import ContributionError

Integers = NDArray[np.int64]
_WHOLE, _FINEST = 62, 44
_MARGIN = 1e-12
"""Relative; more than the rounding of a norm in float64."""


def fraction_bits(universe: int) -> int:
    """The finest grid on which ``universe`` clipped gradients cannot overflow: 44 bits up to 2**18 samples.

    Args:
        universe: public number of sample ids, >= 1.
    """
    return min(_FINEST, _WHOLE - max(1, int(universe - 1).bit_length()))


def whole(gradients: ArrayLike, bound: float, bits: int) -> Integers:
    """(P,) sum of clipped gradients in units of ``bound / 2**bits``.

    Args:
        gradients: (b, P), one row per sample, of norm ``bound`` at most up to rounding in any arithmetic.

    Raises:
        ContributionError: a gradient is not finite.
    """
    rows = np.ascontiguousarray(gradients, np.float64)  # one layout, so that every norm is rounded in one way
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.isfinite(norms).all():
        raise ContributionError(
            "the gradient is not a number",
            where="step",
            remedy="lower the learning rate; training stopped at its last good step",
        )
    most = bound * (1 - _MARGIN)
    scale = np.divide(most, norms, out=np.ones_like(norms), where=norms > most)
    return np.asarray(np.trunc(rows * (scale / bound * 2.0**bits)).astype(np.int64).sum(axis=0), np.int64)


def real(total: ArrayLike, mechanism: DpSgd, bits: int) -> NDArray[np.float64]:
    """(P,) the sum of all clients' integers as a sum of gradients."""
    return np.asarray(np.asarray(total, np.int64) * (mechanism.clip * 2.0**-bits), np.float64)
