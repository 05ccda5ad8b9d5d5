"""The exact law of the summed score along one path of banks over several rounds.

Each round's T is cut into fine cells with certified masses (``background``, ``cells``); every cell goes to the nearest
point of a common grid of ``ell_mix``; laws on the grid convolve over rounds. Cutting, rounding and summing process the
releases, so the epsilon of the rounded sum is a valid lower bound. What rounding gives away is of second order in the
grid's step and is shown by a second grid of twice the step.

Masses are carried between certified bounds. Convolutions are plain sums of nonnegative products, so each mass keeps its
relative precision in the farthest tail, with no transform whose rounding would have to be bounded there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coalmine.auditor.background import NEGLECTED, UNIT, Array, Background, series
from coalmine.auditor.cells import best_event, measure
from coalmine.auditor.exact import Rates, ladder
from coalmine.auditor.rounds.path import ScoredRound, check_path
from coalmine.protocol.errors import DataError, StudyError

POINTS = 1 << 12
"""Grid points of the round whose ``ell_mix`` spreads furthest."""
_CELLS_PER_STEP = 2
_PARTS = 32
_TRIMMED = 1e-16
"""Mass that both laws together may have beyond either end of the grid; it is moved to the end."""


@dataclass(frozen=True)
class SumLaw:
    """Law of the rounded sum of ``ell_mix``, without the canary (absent) and with an eligible one (present).

    Attributes:
        step: of the grid. first: grid points are ``step * (first + i)``.
        absent_low, absent_high, present_low, present_high: (n,) certified bounds on the masses.
        slack: how far the rounded sum can lie from the sum. trimmed: mass for which that does not hold.
    """

    step: float
    first: int
    absent_low: Array
    absent_high: Array
    present_low: Array
    present_high: Array
    slack: float
    trimmed: float

    @property
    def points(self) -> Array:
        return np.asarray(self.step * (self.first + np.arange(len(self.absent_low))), dtype=np.float64)

    def then(self, other: SumLaw) -> SumLaw:
        """The law of the sum with another, independent round's."""
        # A dot product of m nonnegative terms is wrong by at most m roundings of itself, in any order.
        rounding = 4 * UNIT * (2 + min(len(self.absent_low), len(other.absent_low)))
        low, high = 1 - rounding, 1 + rounding
        return SumLaw(
            self.step,
            self.first + other.first,
            np.convolve(self.absent_low, other.absent_low) * low,
            np.convolve(self.absent_high, other.absent_high) * high,
            np.convolve(self.present_low, other.present_low) * low,
            np.convolve(self.present_high, other.present_high) * high,
            self.slack + other.slack,
            self.trimmed + other.trimmed,
        ).trim()

    def coarser(self) -> SumLaw:
        """On a grid of twice the step, for one round: points 2j and 2j + 1 become one."""
        places = (self.first + np.arange(len(self.absent_low))) // 2
        first = int(places[0])
        low, high = (
            [_gathered(places - first, masses, side) for masses in bounds]
            for side, bounds in (
                (-1, (self.absent_low, self.present_low)),
                (1, (self.absent_high, self.present_high)),
            )
        )
        return SumLaw(
            2 * self.step, first, low[0], high[0], low[1], high[1], self.slack + 1.5 * self.step, self.trimmed
        )

    def trim(self) -> SumLaw:
        """Move the outermost mass, a negligible share under both laws, to the nearest point that stays."""
        mass = self.absent_high + self.present_high
        start = int(np.searchsorted(np.cumsum(mass), _TRIMMED))
        stop = len(mass) - int(np.searchsorted(np.cumsum(mass[::-1]), _TRIMMED))

        def gather(masses: Array, side: int) -> Array:
            kept = masses[start:stop].copy()
            kept[0] += masses[:start].sum()
            kept[-1] += masses[stop:].sum()
            return kept * (1 + side * UNIT * (start + len(masses) - stop + 4))

        return SumLaw(
            self.step,
            self.first + start,
            gather(self.absent_low, -1),
            gather(self.absent_high, 1),
            gather(self.present_low, -1),
            gather(self.present_high, 1),
            self.slack,
            self.trimmed + 2 * _TRIMMED,
        )

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Certified bounds on the smallest epsilon >= 0 of the rounded sum at ``delta``, both directions."""
        present, absent = (self.present_low, self.present_high), (self.absent_low, self.absent_high)
        pairs = ((present, absent), (absent, present))
        lower = max(best_event(gain[0], cost[1], delta, -1) for gain, cost in pairs)
        return lower, max(lower, *(best_event(gain[1], cost[0], delta, 1) for gain, cost in pairs))

    def rates(self, thresholds: ArrayLike) -> Rates:
        """Error rates of the decisions ``S > threshold`` on the sum that was not rounded.

        The masses are spread evenly around their grid points. The error counts all mass as misplaced whose side
        rounding leaves open, so it is pessimistic; the rates themselves are accurate to second order in the step.
        """
        levels = np.atleast_1d(np.asarray(thresholds, dtype=np.float64))
        edges = self.step * (self.first + np.arange(len(self.absent_low) + 1) - 0.5)
        columns, error = [], 0.0
        for low, high in ((self.present_low, self.present_high), (self.absent_low, self.absent_high)):
            least, most = (np.append(np.cumsum(masses[::-1])[::-1], 0.0) for masses in (low, high))
            rate = np.interp(levels, edges, 0.5 * (least + most))
            surely = least[np.searchsorted(self.points, levels + self.slack, side="right")]
            perhaps = most[np.searchsorted(self.points, levels - self.slack, side="right")]
            error = max(error, float(np.max(np.maximum(rate - surely, perhaps - rate), initial=0.0)))
            columns.append(np.clip(rate, 0.0, 1.0))
        return Rates(columns[0], columns[1], error + self.trimmed + 4 * UNIT * len(edges))


@dataclass(frozen=True)
class PathEpsilon:
    """The epsilon of the summed score, *conditional on the banks* along the path.

    Attributes:
        lower: a valid lower bound, all numerical error included; >= 0.
        error: certified; the epsilon of the rounded sum lies within ``[lower, lower + error]``.
        rounding: by how much a grid of twice the step shows less. What this grid gives away in turn is of second order
            in the step, about a third of it; not certified, and never to the benefit of ``lower``.
    """

    lower: float
    error: float
    rounding: float


def exact_epsilons(path: Sequence[ScoredRound], delta: float) -> tuple[PathEpsilon, ...]:
    """The exact epsilon of every prefix of a path, 1 to T rounds.

    Args:
        path: T >= 1 rounds on the banks that came out, with the true test users' projections.
        delta: in (0, 1).

    Raises:
        StudyError: no round, or delta out of range.
        DataError: noise that vanishes against the other users' votes.
    """
    if not 0 < delta < 1:
        raise StudyError(f"{delta!r} is not allowed", where="delta", remedy="needs a probability in (0, 1)")
    rounds = round_laws(path)
    found = []
    for law, wider in zip(prefixes(rounds), prefixes([each.coarser() for each in rounds]), strict=True):
        (lower, upper), (less, _) = law.epsilon(delta), wider.epsilon(delta)
        found.append(PathEpsilon(max(lower, less), max(lower, less, upper) - max(lower, less), max(0.0, lower - less)))
    return tuple(found)


def compose(path: Sequence[ScoredRound], points: int = POINTS) -> tuple[SumLaw, ...]:
    """The law of the summed score after 1, ..., T rounds.

    Args:
        points: of the grid, for the round that needs most. What the grid gives away falls with their square.

    Raises:
        StudyError: no round. DataError: as for ``exact_epsilons``.
    """
    return prefixes(round_laws(path, points))


def prefixes(rounds: Sequence[SumLaw]) -> tuple[SumLaw, ...]:
    """Running sums of independent rounds."""
    return tuple(accumulate(rounds, SumLaw.then))


def round_laws(path: Sequence[ScoredRound], points: int = POINTS) -> tuple[SumLaw, ...]:
    """The law of each round's ``ell_mix``, on a common grid. Arguments and errors as for ``compose``."""
    check_path(path)
    step = max(float(np.ptp(each.ell_mix(_window(each)))) for each in path) / points
    found = {id(each): each for each in path}  # a round that recurs is computed once
    laws = {key: round_law(each, step) for key, each in found.items()}
    return tuple(laws[id(each)] for each in path)


def round_law(each: ScoredRound, step: float) -> SumLaw:
    """The law of one round's ``ell_mix``, rounded to the grid."""
    q, tau = each.score.q, each.score.noise_std
    background, shift = Background.of(each.projections, tau, q), each.shift / tau
    tilts = ladder(background, shift)
    low = min(background.edge(tilt, -1) for tilt in tilts)
    high = max(background.edge(tilt, 1) for tilt in tilts) + shift
    laws = [series(background, tilt, low, high) for tilt in tilts]
    start, stop = _window(each) / tau
    # ell_mix rises by at most tau per unit of the noise, so a cell rises by at most a fraction of a step.
    parents = math.ceil((stop - start) * tau * _CELLS_PER_STEP / (step * _PARTS))
    width = (stop - start) / parents
    cells = measure(laws, start + width * np.arange(parents, dtype=np.float64), width, shift)
    values = each.ell_mix(tau * (cells.left + cells.width / 2))
    if not np.isfinite(values).all():
        raise DataError("a score is not a finite number", where="exact audit", remedy="sigma C must not vanish")
    places = np.rint(values / step).astype(np.int64)
    first = int(places.min())

    def onto_grid(masses: Array, side: int) -> Array:
        gathered = _gathered(places - first, masses, side)
        if side > 0:  # what lies beyond the cells belongs to the ends
            gathered[[0, -1]] += NEGLECTED
        return gathered

    return SumLaw(
        step,
        first,
        onto_grid(cells.a_low, -1),
        onto_grid(cells.a_high, 1),
        onto_grid((1 - q) * cells.a_low + q * cells.b_low, -1),
        onto_grid((1 - q) * cells.a_high + q * cells.b_high, 1),
        slack=step / 2 + tau * width / _PARTS,
        trimmed=4 * NEGLECTED,
    ).trim()


def _gathered(places: NDArray[np.int64], masses: Array, side: int) -> Array:
    """Sums of the masses at each place, rounded down (side -1) or up (+1)."""
    sums = np.bincount(places, weights=masses) * (1 + side * UNIT * (len(masses) + 8))
    return np.asarray(sums + (np.finfo(np.float64).tiny * (len(masses) + 1) if side > 0 else 0.0), dtype=np.float64)


def _window(each: ScoredRound) -> Array:
    """(2,) values of T beyond which neither law has mass worth naming."""
    tau = each.score.noise_std
    background = Background.of(each.projections, tau, each.score.q)
    low, high = background.edge(0.0, -1), background.edge(0.0, 1)
    return tau * np.array([low, high + each.shift / tau])
