"""Forward selection exactly as the method states it: every trial re-routes every record and solves in full."""

import numpy as np


def histogram(retained, pool, canary, k, picks):
    """Unclipped histogram of the canary on the trial probes; trial bank = retained bank, then probes in order."""
    bank = np.concatenate([retained, pool[list(picks)]]) if len(picks) else retained
    counts = np.zeros(len(bank), dtype=int)
    for record in canary:
        distance = np.sum((record - bank) ** 2, axis=1)
        counts[np.argsort(distance, kind="stable")[:k]] += 1
    return counts[len(retained) :] / (len(canary) * k)


def norm_objective(w, picks, covariance):
    return float(np.round(w @ w, 15))


def mu_objective(w, picks, covariance):
    return float(w @ np.linalg.solve(covariance[np.ix_(picks, picks)], w))


def select(retained, pool, canary, k, r, objective, covariance=None, tie=1e-10):
    picks, values = [], []
    for _ in range(r):
        trials = {}
        for item in range(len(pool)):
            if item not in picks:
                trial = [*picks, item]
                trials[item] = objective(histogram(retained, pool, canary, k, trial), trial, covariance)
        best = max(trials.values())
        choice = min(item for item, value in trials.items() if value >= best * (1 - tie))
        picks.append(choice)
        values.append(trials[choice])
    return picks, values
