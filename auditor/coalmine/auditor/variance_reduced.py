"""Variance-reduced Monte-Carlo: draw who takes part, integrate the Gaussian noise.

Given the participants, ``T = B + Normal(0, tau^2)`` exceeds the threshold t with probability
``p0 = Phi((B - t) / tau)``, and with an eligible canary with ``p1 = (1-q) p0 + q Phi((B + s_canary - t) / tau)``. Their
means are FPR and TPR; they vary far less than the answers they stand for, and not at all without a background. The
means are bounded by predictable plug-in betting (see ``betting``), which assumes nothing beyond independent trials and
the bounds on B that the projections give.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from coalmine.auditor.betting import mean_lower, mean_upper
from coalmine.auditor.cohorts import Array, background_sums, check_score, in_chunks
from coalmine.auditor.eps_bound import EpsBound, Split, bound_from_rates
from coalmine.protocol.errors import StudyError

METHOD = "variance-reduced/betting"


@dataclass(frozen=True)
class Probabilities:
    """Probability of an alarm given what was drawn, one per trial; weighted where trials come from a proposal.

    Attributes:
        present, absent: (trials,) with the canary eligible and without it.
        present_range, absent_range: bounds on every value, known without the draws.
        beyond: probability that the values leave out without the canary; to be added to the FPR.
        method: how they were drawn.
    """

    present: Array
    absent: Array
    present_range: tuple[float, float]
    absent_range: tuple[float, float]
    beyond: float = 0.0
    method: str = METHOD


def draw(
    projections: Array,
    s_canary: float,
    tau: float,
    q: float,
    threshold: float,
    trials: int,
    seed: int,
    *,
    name: str = "",
    threads: int | None = None,
) -> Probabilities:
    """One participation draw per trial; it serves both hypotheses. The same for any number of threads.

    Args:
        projections: (N,) s_u of the test users.
        s_canary: what the canary adds when it takes part.
        tau: standard deviation of the noise in T, > 0.
        q: participation rate in (0, 1].
        threshold: on T, fixed without these trials; may be infinite.
        trials: >= 1.
        seed, name: the draws depend on these two alone; give every experiment its own name.
        threads: ``None`` for one per core.

    Raises:
        StudyError: a value out of its range.
    """
    check_score(projections, s_canary, tau, q)
    if np.isnan(threshold):
        raise StudyError("the threshold is not a number", where="threshold", remedy="needs a number or an infinity")

    def exceed(sums: Array) -> tuple[Array, Array]:
        absent = ndtr((sums - threshold) / tau)
        return (1 - q) * absent + q * ndtr((sums + (s_canary - threshold)) / tau), absent

    parts = in_chunks(lambda rng, n: exceed(background_sums(rng, projections, q, n)), trials, seed, name, threads)
    # Both probabilities grow with B.
    present_range, absent_range = exceed(_range(projections, q))
    return Probabilities(
        np.concatenate([present for present, _ in parts]),
        np.concatenate([absent for _, absent in parts]),
        (float(present_range[0]), float(present_range[1])),
        (float(absent_range[0]), float(absent_range[1])),
    )


def eps_lower(drawn: Probabilities, delta: float, alpha: float, split: Split = Split.FOUR) -> EpsBound:
    """Lower bound on epsilon, wrong with probability at most ``alpha``.

    FPR_U and TNR_L = 1 - FPR_U are one bound, at the failure probability of the split; so are TPR_L and FNR_U.

    Args:
        delta: in [0, 1).
        alpha: in (0, 1).

    Raises:
        StudyError: a value out of its range.
    """
    gamma = split.gamma(alpha)
    tpr_lower = min(1.0, mean_lower(drawn.present, *drawn.present_range, gamma))
    fpr_upper = min(1.0, mean_upper(drawn.absent, *drawn.absent_range, gamma) + drawn.beyond)
    return bound_from_rates(tpr_lower, fpr_upper, 1 - fpr_upper, 1 - tpr_lower, delta, gamma, split, drawn.method)


def _range(projections: Array, q: float) -> Array:
    """(2,) smallest and largest possible B."""
    if q == 1:
        return np.full(2, projections.sum())
    return np.array([projections[projections < 0].sum(), projections[projections > 0].sum()])
