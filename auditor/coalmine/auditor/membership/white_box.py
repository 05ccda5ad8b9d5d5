"""An attacker in gradient space who sees every noised update: is the trainer's noise what the claim says?

The canary's gradient is one coordinate that no other sample touches, at least as long as the clip. Its observation in
step t is then ``y_t = C * Bernoulli(q) + Normal(0, (sigma C)^2)``, the pair of laws that the claim is computed from, so
the exact epsilon of the likelihood-ratio score over all steps is the PLD epsilon of the *measured* noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2, kstest, norm

from coalmine.auditor.eps_bound import Split
from coalmine.auditor.membership.conventions import all_conventions
from coalmine.protocol.accounting import pld_epsilon
from coalmine.protocol.errors import StudyError
from coalmine.protocol.finding import Evidence
from coalmine.protocol.privacy import Assurance, Claim

Array = NDArray[np.float64]
_TRIALS = ("clopper_pearson_holdout", "clopper_pearson_bonferroni", "gdp")


@dataclass(frozen=True)
class Noise:
    """The noise of observations without the canary, in units of the clip.

    Attributes:
        sigma: root mean square; low, high: chi-squared interval for it. fits: Kolmogorov-Smirnov p-value against a
            normal law of that sigma.
    """

    sigma: float
    low: float
    high: float
    fits: float
    confidence: float


def measured_noise(absent: ArrayLike, alpha: float) -> Noise:
    """Noise of (models, steps) observations of models without the canary, divided by the clip.

    Raises:
        StudyError: fewer than 100 observations, or observations that are no numbers.
    """
    seen = np.asarray(absent, np.float64).ravel()
    if len(seen) < 100 or not np.isfinite(seen).all():
        raise StudyError(f"{len(seen)} observations", where="white box", remedy="needs at least 100 finite ones")
    total, gamma = float(seen @ seen), Split.TWO.gamma(alpha)
    sigma = (total / len(seen)) ** 0.5
    return Noise(
        sigma,
        (total / float(chi2.isf(gamma, len(seen)))) ** 0.5,
        (total / float(chi2.ppf(gamma, len(seen)))) ** 0.5,
        float(kstest(seen / sigma, norm.cdf).pvalue),
        1 - alpha,
    )


def white_box(
    claim: Claim, scale: float, present: ArrayLike, absent: ArrayLike, alpha: float, rng: np.random.Generator
) -> tuple[Evidence, ...]:
    """The score's own epsilon, and what trials of the score show.

    The first is exact: the epsilon of the likelihood-ratio score under the measured noise. It is taken at the upper end
    of the noise's interval, so it is a lower bound with confidence 1 - alpha for a mechanism whose noise is Gaussian,
    which ``noise_fits`` checks; ``error`` is the width that the interval leaves. It holds for a canary that stays in
    the data to the end.

    Args:
        scale: clip over the canary's length, >= 1.
        present, absent: (models, steps) observations y_t over the canary's length, of models with and without it.

    Raises:
        StudyError: shapes or numbers of steps that do not fit the claim, or a canary longer than the clip.
    """
    one, zero = np.asarray(present, np.float64), np.asarray(absent, np.float64)
    steps = {one.shape[-1], zero.shape[-1]}
    if steps != {claim.rounds}:
        raise StudyError(
            f"observations of {sorted(steps)} steps", where="white box", remedy=f"the claim covers {claim.rounds}"
        )
    if not scale >= 1:
        raise StudyError(f"a scale of {scale}", where="white box", remedy="the canary's length is at most the clip")
    noise = measured_noise(zero, alpha)
    low = pld_epsilon(claim.q, noise.high, claim.rounds, claim.delta)[0]
    high = pld_epsilon(claim.q, noise.low, claim.rounds, claim.delta)[1]
    exact = Evidence(
        "white_box/score",
        Assurance.EXACT,
        low,
        1 - alpha,
        high - low,
        {
            "tightness": low / claim.eps_pld_upper,
            "sigma_measured": noise.sigma / scale,
            "sigma_claimed": claim.sigma,
            "noise_fits": noise.fits,
            "q_measured": float(one.mean()),
            "clip_over_length": scale,
        },
    )
    with_canary, without = (log_likelihood_ratio(side, claim.q, claim.sigma * scale) for side in (one, zero))
    trials = all_conventions(with_canary, without, claim.delta, alpha, rng)
    return (exact, *(found for found in trials if found.method in _TRIALS))


def log_likelihood_ratio(observations: ArrayLike, q: float, sigma: float) -> Array:
    """(models,) the attacker's score, ``sum_t log(1 - q + q exp((2 y_t - 1) / (2 sigma^2)))``."""
    y = np.asarray(observations, np.float64)
    per_step = np.logaddexp(np.log1p(-q) if q < 1 else -np.inf, np.log(q) + (2 * y - 1) / (2 * sigma**2))
    return np.asarray(per_step.sum(axis=-1), np.float64)
