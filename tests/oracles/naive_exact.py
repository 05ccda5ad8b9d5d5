"""The score's law as an explicit mixture of normals, its epsilon by bracketing every sign change on a dense grid."""

import itertools

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import binom


def enumerated(projections, q):
    """Weights and means over all 2^N ways to take part."""
    weights, means = [], []
    for taking_part in itertools.product([0, 1], repeat=len(projections)):
        weights.append(np.prod([q if j else 1 - q for j in taking_part]))
        means.append(float(np.dot(taking_part, projections)))
    return np.array(weights), np.array(means)


def binomial(step, users, q):
    """Weights and means when every user moves the score by the same step."""
    return binom.pmf(np.arange(users + 1), users, q), step * np.arange(users + 1)


class Law:
    """T without the canary, and with an eligible one that adds ``s`` with probability q."""

    def __init__(self, weights, means, tau, s, q):
        kept = weights > 1e-30
        self.weights, self.means, self.tau, self.s, self.q = weights[kept], means[kept], tau, s, q

    def _mix(self, function, x):
        return function((np.atleast_1d(x)[:, None] - self.means) / self.tau) @ self.weights

    def density(self, x):
        f0, moved = (
            self._mix(lambda z: np.exp(-z * z / 2) / (np.sqrt(2 * np.pi) * self.tau), np.atleast_1d(x) - shift)
            for shift in (0.0, self.s)
        )
        return f0, (1 - self.q) * f0 + self.q * moved

    def above(self, x):
        f0, moved = (self._mix(lambda z: ndtr(-z), np.atleast_1d(x) - shift) for shift in (0.0, self.s))
        return f0, (1 - self.q) * f0 + self.q * moved

    def masses(self, left, right):
        """Of intervals; each component's in the tail where it does not cancel."""

        def between(a, b):
            return np.where(a > 0, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))

        f0, moved = (
            between(*((np.asarray(end)[:, None] - shift - self.means) / self.tau for end in (left, right)))
            @ self.weights
            for shift in (0.0, self.s)
        )
        return f0, (1 - self.q) * f0 + self.q * moved

    def epsilon(self, delta, points=6001):
        reach = 9 * self.tau
        grid = np.linspace(self.means.min() - reach + min(0, self.s), self.means.max() + reach + max(0, self.s), points)
        ratio = self._log_ratio(grid)

        def divergence(eps, direction):
            excess = direction * ratio - eps
            crossing = np.flatnonzero(np.sign(excess[:-1]) != np.sign(excess[1:]))
            low, high = grid[crossing], grid[crossing + 1]
            rising = excess[crossing] < 0
            for _ in range(60):
                middle = (low + high) / 2
                above = direction * self._log_ratio(middle) - eps > 0
                low, high = np.where(above == rising, low, middle), np.where(above == rising, middle, high)
            ends = np.concatenate([[-np.inf], (low + high) / 2, [np.inf]])
            f0, f1 = self.masses(ends[:-1], ends[1:])
            inside = np.concatenate([excess[:1], excess[crossing + 1]]) > 0
            gain, loss = (f1, f0) if direction > 0 else (f0, f1)
            return float((gain - np.exp(eps) * loss)[inside].sum()) - delta

        return max(self._root(lambda eps, d=direction: divergence(eps, d)) for direction in (1, -1))

    def _log_ratio(self, x):
        if len(x) == 0:
            return np.empty(0)
        f0, f1 = self.density(x)
        return np.log(f1) - np.log(f0)

    @staticmethod
    def _root(function):
        return 0.0 if function(0.0) <= 0 else float(brentq(function, 0.0, 40.0, xtol=1e-13))
