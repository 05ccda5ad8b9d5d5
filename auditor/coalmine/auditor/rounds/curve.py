"""Power of the summed score: the exact trade-off curve with sampled points on it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor import clopper_pearson
from coalmine.auditor.background import Array
from coalmine.auditor.result import TradeOff
from coalmine.auditor.rounds.composition import SumLaw

_CURVE = 201
_BAND = 13


def _quantiles(masses: Array, tails: tuple[float, float]) -> tuple[int, int]:
    """Places beyond which so much of the mass lies below, respectively above."""
    low = int(np.searchsorted(np.cumsum(masses), tails[0]))
    high = len(masses) - int(np.searchsorted(np.cumsum(masses[::-1]), tails[1]))
    return low, min(high, len(masses) - 1)


def band_levels(law: SumLaw) -> Array:
    """(n,) thresholds on the sum at which the trade-off curve is sampled."""
    low, high = _quantiles(law.present_high, (1e-3, 1e-4))
    return np.linspace(law.points[low], law.points[high], _BAND)


def trade_off(
    law: SumLaw, threshold: float, tp: NDArray[np.int64], fp: NDArray[np.int64], trials: int, alpha: float
) -> TradeOff:
    """The curve from the law of the sum, and the counts at ``band_levels`` with pointwise Clopper-Pearson bands."""
    low, high = _quantiles(law.present_high, (1e-7, 1e-7))
    rates = law.rates(np.append(np.linspace(law.points[high], law.points[low], _CURVE), threshold))
    return TradeOff(
        fpr=tuple(rates.fpr[:-1].tolist()),
        tpr=tuple(rates.tpr[:-1].tolist()),
        sampled_fpr=tuple((fp / trials).tolist()),
        sampled_tpr=tuple((tp / trials).tolist()),
        tpr_low=tuple(clopper_pearson.lower(tp, trials, alpha / 2).tolist()),
        tpr_high=tuple(clopper_pearson.upper(tp, trials, alpha / 2).tolist()),
        confidence=1 - alpha,
        chosen=(float(rates.fpr[-1]), float(rates.tpr[-1])),
    )
