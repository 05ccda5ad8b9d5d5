"""Several rounds the plain way, whole histograms one trial after the other, and the law of two rounds by quadrature."""

import numpy as np
from oracles.naive_exact import Law, enumerated


def ell_mix(histogram, direction, offset, q):
    return np.log((1 - q) + q * np.exp(direction @ histogram - offset))


def counts(rounds, noise_std, q, thresholds, trials, rng):
    """(T, 2) how often the summed score exceeds each prefix's threshold, with an eligible canary and without.

    Rounds are (votes (N, r), canary (r,), direction (r,), offset).
    """
    hits = np.zeros((len(rounds), 2), int)
    for _ in range(trials):
        for eligible in (True, False):
            total = 0.0
            for t, (votes, canary, direction, offset) in enumerate(rounds):
                histogram = np.zeros(votes.shape[1])
                for vote in votes:
                    if rng.random() < q:
                        histogram += vote
                if eligible and rng.random() < q:
                    histogram += canary
                histogram += rng.normal(0.0, noise_std, votes.shape[1])
                total += ell_mix(histogram, direction, offset, q)
                hits[t, int(not eligible)] += total > thresholds[t]
    return hits


def two_rounds(first, second, threshold, points=20_001):
    """(TPR, FPR) of ``ell_mix_1 + ell_mix_2 > threshold``: the first round by trapezoids, the second in closed form.

    Rounds are (projections, s_canary, tau, q, offset); every cohort is listed.
    """
    laws = [Law(*enumerated(projections, q), tau, s, q) for projections, s, tau, q, _ in (first, second)]
    law, tau, q, offset = laws[0], first[2], first[3], first[4]
    x = np.linspace(law.means.min() - 10 * tau, law.means.max() + max(0.0, law.s) + 10 * tau, points)
    needed = threshold - np.log((1 - q) + q * np.exp(x - offset))
    q, offset = second[3], second[4]
    with np.errstate(divide="ignore", invalid="ignore"):
        at = np.where(needed > np.log1p(-q), np.log((np.exp(needed) - (1 - q)) / q) + offset, -np.inf)
    above = laws[1].above(np.clip(at, -1e6, 1e6))
    f0, f1 = law.density(x)
    return float(np.trapezoid(f1 * above[1], x)), float(np.trapezoid(f0 * above[0], x))
