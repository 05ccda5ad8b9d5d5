"""The law of the score when the canary is absent, by its characteristic function.

In units of the noise, ``T = sum_u J_u s_u + Normal(0, 1)`` with independent ``J_u ~ Bernoulli(q)``, so
``E exp(iwT) = exp(-w^2/2) prod_u (1 + q (exp(i w s_u) - 1))``. The Gaussian factor makes it vanish beyond
``|w| = 8.5``, and Chernoff's bound says outside which window T has no mass worth naming: a short Fourier series is the
whole law.

Tilting by ``exp(theta T)`` keeps the form: every user takes part at its own rate and the Gaussian moves by theta. A
tilted series resolves a far tail to the relative precision that the plain one has in the middle.

Every number comes with a bound on its error: neglected mass, cut-off, and rounding counted term by term.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from coalmine.protocol.compiled import compiled
from coalmine.protocol.errors import DataError

Array = NDArray[np.float64]

CUT_OFF = 8.5
"""Frequencies beyond it carry less than exp(-CUT_OFF^2 / 2) = 2e-16."""
NEGLECTED = 1e-18
"""Mass and relative density that the window leaves outside on either side, in the sense of Chernoff's bound."""
WIDEST = 2.0**12
"""Widest window in units of the noise that is worth a Fourier series."""
UNIT = 2.0**-53
"""Unit roundoff of float64."""
PEAK = 1 / math.sqrt(2 * math.pi)
"""Density of the standard normal at 0: no density of T is higher."""
_NEGLIGIBLE = -38.0
"""Log-modulus below which the product over users is left at this bound."""
_FARTHEST = 300.0
"""Where untilting would magnify errors by more than exp of this, a series says nothing."""
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Background:
    """``sum_u J_u s_u + Normal(0, 1)``.

    Attributes:
        shifts: (g,) distinct values of s_u, none zero.
        counts: (g,) how many users have each.
        q: participation rate in (0, 1].
    """

    shifts: Array
    counts: Array
    q: float

    @classmethod
    def of(cls, projections: Array, noise_std: float, q: float) -> Background:
        """Users that do not move the score are dropped, users that move it alike are grouped."""
        shifts, counts = np.unique(projections[projections != 0] / noise_std, return_counts=True)
        return cls(shifts, counts.astype(np.float64), q)

    def rates(self, tilt: float) -> Array:
        """(g,) participation rates under the tilt, ``q e^{ts} / (1 - q + q e^{ts})``."""
        return np.asarray(expit(logit(self.q) + tilt * self.shifts), dtype=np.float64)

    def cumulant(self, tilt: float) -> float:
        """``log E exp(tilt T)``."""
        exponent = tilt * self.shifts
        log_absent = math.log1p(-self.q) if self.q < 1 else -math.inf
        near = np.log1p(self.q * np.expm1(np.clip(exponent, -1, 1)))
        far = np.logaddexp(log_absent, math.log(self.q) + exponent)
        return tilt**2 / 2 + float(self.counts @ np.where(np.abs(exponent) <= 1, near, far))

    def mean(self, tilt: float) -> float:
        """Mean of T under the tilt."""
        return tilt + float((self.counts * self.rates(tilt)) @ self.shifts)

    def std(self, tilt: float) -> float:
        """Standard deviation of T under the tilt."""
        rates = self.rates(tilt)
        return math.sqrt(1 + float((self.counts * rates * (1 - rates)) @ self.shifts**2))

    def edge(self, tilt: float, side: int) -> float:
        """Beyond it (side +1 or -1) the tilted law has mass below NEGLECTED and density below PEAK * NEGLECTED.

        Chernoff: ``P(T > x) <= exp(K(l) - l x)`` for every ``l > 0``, and the density at most PEAK times that. Any
        ``l`` is valid; a few steps of ``l K' - K = -log NEGLECTED`` find a good one.
        """
        cost, base = -math.log(NEGLECTED), self.cumulant(tilt)
        step = side * math.sqrt(2 * cost) / self.std(tilt)
        edges = []
        for _ in range(3):
            growth = self.cumulant(tilt + step) - base
            edges.append((growth + cost) / step)
            step *= math.sqrt(cost / max(step * self.mean(tilt + step) - growth, 1e-3 * cost))
        return min(edges) if side > 0 else max(edges)


@dataclass(frozen=True)
class Series:
    """Fourier series of the tilted law on one window. The density of T at x is ``exp(log_scale - tilt x)`` times it.

    Attributes:
        tilt, log_scale: theta and the cumulant K(theta).
        mean: centre of the expansion.
        period: width of the window.
        frequencies: (K,) from 0 to CUT_OFF.
        coefficients: (K,) complex.
        density_error: certified bound on the error of the tilted density anywhere in the window.
    """

    tilt: float
    log_scale: float
    mean: float
    period: float
    frequencies: Array
    coefficients: NDArray[np.complex128]
    density_error: float

    def masses(self, left: Array, width: float, parts: int) -> tuple[Array, Array]:
        """Masses of T in cells, and bounds on their errors.

        Each cell ``[left, left + width]`` is cut in equal parts; the transform of a part's window multiplies the
        series, which is the difference of the CDF without its cancellation.

        Args:
            left: (n,) left ends inside the window.
            width: of one cell.
            parts: number of equal parts per cell.

        Returns:
            two (n * parts,) arrays.
        """
        part = width / parts
        offsets = (np.arange(parts) + 0.5) * part
        half = 0.5 * part * (self.tilt + 1j * self.frequencies)
        window = np.ones_like(half)
        np.divide(np.sinh(half), half, out=window, where=half != 0)
        within = np.exp(-1j * np.outer(self.frequencies, offsets)) * (part * self.coefficients * window)[:, None]
        tilted = np.empty((len(left), parts))
        rows = max(1, _CHUNK // len(self.frequencies))
        for start in range(0, len(left), rows):
            cells = left[start : start + rows] - self.mean
            turns = np.outer(cells, self.frequencies)
            tilted[start : start + rows] = np.cos(turns) @ within.real + np.sin(turns) @ within.imag
        middle = (left[:, None] + offsets).ravel()
        log_scale = self.log_scale - self.tilt * middle
        scale = np.exp(np.minimum(log_scale, _FARTHEST))
        masses = scale * tilted.ravel()
        # Rounding of the scale, and of where the cells lie: the density's logarithm is nowhere steep enough for more.
        relative = 8 * UNIT * (1 + abs(self.log_scale) + np.abs(self.tilt * middle) + 2 * self.period)
        error = scale * (self.density_error * part * math.cosh(0.5 * self.tilt * part)) + relative * np.abs(masses)
        return masses, np.where(log_scale < _FARTHEST, error + np.finfo(np.float64).tiny, np.inf)

    def tails(self, points: Array, end: float) -> tuple[Array, float]:
        """``P(points < T < end)`` by a series without tilt, up to the window's right end, and a bound on its error."""
        turning = self.frequencies[1:]
        rotated = np.exp(-1j * np.outer(points - self.mean, turning)) - np.exp(-1j * (end - self.mean) * turning)
        waves = (rotated @ (self.coefficients[1:] / (1j * turning))).real
        flat = self.coefficients[0].real * (end - points)
        return flat + waves, (self.density_error + 4 * UNIT) * self.period + NEGLECTED


def series(background: Background, tilt: float, low: float, high: float) -> Series:
    """The series of the tilted law on ``[low, high]``, which must reach beyond both of the law's edges.

    Raises:
        DataError: the window is wider than WIDEST.
    """
    period = high - low
    if not period <= WIDEST:
        raise DataError(
            f"the score's law spans {period:.3g} standard deviations of the noise",
            where="exact audit",
            remedy=f"at most {WIDEST:.0f}: the noise must not vanish against the other users' votes",
        )
    frequencies: Array = 2 * np.pi / period * np.arange(math.ceil(CUT_OFF * period / (2 * np.pi)) + 1, dtype=np.float64)
    rates = background.rates(tilt)
    log_modulus, phase, terms = _log_characteristic(frequencies, background.shifts, background.counts, rates)
    modulus = np.exp(log_modulus - 0.5 * frequencies**2)
    weights = np.full(len(frequencies), 2 / period)
    weights[0] = 1 / period
    # First-order rounding bounds: the logarithm's terms, the Gaussian exponent, the turn w (x - mean), and the sum over
    # frequencies.
    rounding = UNIT * (8 * terms + frequencies**2 + 4 * frequencies * period + 4 * (len(frequencies) + 8))
    cut = math.exp(-0.5 * frequencies[-1] ** 2) / (np.pi * frequencies[-1])
    wrapped = 4 * PEAK * NEGLECTED
    return Series(
        tilt=tilt,
        log_scale=background.cumulant(tilt),
        mean=tilt + math.fsum(background.counts * rates * background.shifts),
        period=period,
        frequencies=frequencies,
        coefficients=weights * modulus * np.exp(1j * phase),
        density_error=float(weights @ (modulus * rounding)) + cut + wrapped + CUT_OFF * math.exp(_NEGLIGIBLE),
    )


@compiled()
def _log_characteristic(frequencies: Array, shifts: Array, counts: Array, rates: Array) -> tuple[Array, Array, Array]:
    """Logarithm of ``prod (1 + rate (exp(iws) - 1)) exp(-iw rate s)`` per frequency, and the size of what was added up.

    Terms are summed with Neumaier's compensation, so the error is the rounding of the terms, not of their running sum.
    """
    log_modulus = np.zeros(len(frequencies))
    phase = np.zeros(len(frequencies))
    terms = np.zeros(len(frequencies))
    for k in range(len(frequencies)):
        floor = _NEGLIGIBLE + 0.5 * frequencies[k] ** 2
        total = lost = turn = slip = size = 0.0
        for g in range(len(shifts)):
            half = 0.5 * frequencies[k] * shifts[g]
            rate = rates[g]
            sine = math.sin(half)
            square = sine * sine
            shrunk = 1.0 - 4.0 * rate * (1.0 - rate) * square
            if shrunk < 1e-30:
                total = floor - 1.0
                break
            angle = math.atan2(2.0 * rate * sine * math.cos(half), 1.0 - 2.0 * rate * square)
            drift = 2.0 * rate * half
            log_term = 0.5 * counts[g] * math.log1p(-4.0 * rate * (1.0 - rate) * square)
            raised = total + log_term
            lost += (total - raised) + log_term if abs(total) >= abs(log_term) else (log_term - raised) + total
            total = raised
            turn_term = counts[g] * (angle - drift)
            turned = turn + turn_term
            slip += (turn - turned) + turn_term if abs(turn) >= abs(turn_term) else (turn_term - turned) + turn
            turn = turned
            size += abs(log_term) / shrunk + counts[g] * (abs(angle) + abs(drift)) / math.sqrt(shrunk)
            if total < floor:
                break
        log_modulus[k] = total + lost
        phase[k] = turn + slip
        terms[k] = size
    return log_modulus, phase, terms
