"""TPR and FPR of a small audit by listing every possible cohort."""

from itertools import product
from statistics import NormalDist


def rates(projections, s_canary, tau, q, threshold):
    """(TPR, FPR) of ``T > threshold``, exact to rounding; 2^N terms."""
    noise = NormalDist(0.0, tau)
    tpr = fpr = 0.0
    for cohort in product((0, 1), repeat=len(projections)):
        size = sum(cohort)
        chance = q**size * (1 - q) ** (len(cohort) - size)
        total = sum(s for s, takes_part in zip(projections, cohort, strict=True) if takes_part)
        without, with_canary = (1 - noise.cdf(threshold - x) for x in (total, total + s_canary))
        fpr += chance * without
        tpr += chance * ((1 - q) * without + q * with_canary)
    return tpr, fpr
