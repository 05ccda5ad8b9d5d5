"""One trial after the other on whole histograms, as the method describes it: no projection, no skipping."""

import numpy as np


def counts(votes, canary, weights, noise_std, q, threshold, trials, rng):
    """(tp, fp) of ``weights @ Y > threshold`` for (N, r) votes and an (r,) canary vote."""
    hits = [0, 0]
    for _ in range(trials):
        for eligible in (True, False):
            histogram = np.zeros(votes.shape[1])
            for vote in votes:
                if rng.random() < q:
                    histogram += vote
            if eligible and rng.random() < q:
                histogram += canary
            histogram += rng.normal(0.0, noise_std, votes.shape[1])
            hits[not eligible] += weights @ histogram > threshold
    return tuple(int(hit) for hit in hits)
