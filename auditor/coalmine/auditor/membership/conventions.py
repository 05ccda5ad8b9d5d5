"""The conventions in which eps_lb is reported from in/out scores, side by side (arXiv 2608.28934, section 2.4, A.1).

The level: ``alpha`` is the failure probability of the whole statement, shared equally by the two bounds that it rests
on (gamma = alpha/2 each). Published figures often give each bound the whole alpha; pass ``alpha=0.1`` for theirs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from coalmine.auditor import clopper_pearson, gdp
from coalmine.auditor.eps_bound import Split, eps_lower, eps_lower_scan
from coalmine.auditor.membership.ceiling import ceiling
from coalmine.auditor.membership.thresholds import Sweep, counts_at, halves, sweep
from coalmine.protocol.errors import StudyError
from coalmine.protocol.finding import Evidence
from coalmine.protocol.privacy import Assurance

LEAST_MODELS = 20
"""Per side, for a formal statement."""

Array = NDArray[np.float64]


def all_conventions(
    present: ArrayLike, absent: ArrayLike, delta: float, alpha: float, rng: np.random.Generator
) -> tuple[Evidence, ...]:
    """Every convention on the same scores, formal ones first.

    Args:
        present, absent: (n1,), (n0,) scores of models with and without the canary, higher = present.
        delta: of the claim, in (0, 1). alpha: in (0, 1).
        rng: halves the models for the conventions with a holdout.

    Raises:
        StudyError: fewer than 20 models on a side, or scores that are no numbers.
    """
    chosen, reported = _halved(present, absent, rng)
    return (
        clopper_pearson_holdout(chosen, reported, delta, alpha),
        clopper_pearson_bonferroni(present, absent, delta, alpha),
        multiple_hypothesis(present, absent, delta),
        multiple_hypothesis_corrected(present, absent, delta, alpha),
        gdp_holdout(chosen, reported, delta, alpha),
        gdp_all(present, absent, delta, alpha),
    )


Half = tuple[Array, Array]
"""(present, absent) scores of some of the models."""


def clopper_pearson_holdout(chosen: Half, reported: Half, delta: float, alpha: float) -> Evidence:
    """Formal: the threshold from some models, the bound from others."""
    require_models(*map(len, (*chosen, *reported)), least=LEAST_MODELS // 2)
    threshold = best_threshold(sweep(*chosen), delta, alpha)
    tp, fp = counts_at(*reported, threshold)
    n1, n0 = len(reported[0]), len(reported[1])
    bound = eps_lower(tp, fp, n1, n0, delta, alpha, Split.TWO)
    return _evidence(
        "clopper_pearson_holdout",
        Assurance.FORMAL,
        bound.eps_lower,
        1 - alpha,
        {"threshold": threshold, "tp": tp, "fp": fp, "ceiling": ceiling(n1, n0, delta, bound.gamma)},
        n1,
        n0,
    )


def clopper_pearson_bonferroni(present: ArrayLike, absent: ArrayLike, delta: float, alpha: float) -> Evidence:
    """Formal: all thresholds on the same models, the level shared among them.

    Thresholds are the observed scores. That is covered: the share of absent models above an observed absent score has
    the Beta law that Clopper-Pearson's bound is a quantile of, and likewise for the other side.
    """
    tests = sweep(present, absent)
    require_models(tests.with_canary, tests.without)
    # As many as there are models, so that the number of tests does not follow from ties in the scores.
    count = tests.with_canary + tests.without
    found = _scan(tests, delta, alpha / count)
    best = int(found.argmax())
    return _evidence(
        "clopper_pearson_bonferroni",
        Assurance.FORMAL,
        float(found[best]),
        1 - alpha,
        {
            "threshold": float(tests.thresholds[best]),
            "tests": count,
            "ceiling": ceiling(tests.with_canary, tests.without, delta, Split.TWO.gamma(alpha / count)),
        },
        tests.with_canary,
        tests.without,
    )


def multiple_hypothesis(present: ArrayLike, absent: ArrayLike, delta: float) -> Evidence:
    """Heuristic: the best finite ``log`` ratio of observed rates over all thresholds, nothing corrected.

    It is well above 0 when nothing leaks; see :func:`null_means`.
    """
    tests = sweep(present, absent)
    fpr, tpr = tests.fp / tests.without, tests.tp / tests.with_canary
    best = float(max(_one_sided(tpr, fpr, delta).max(), _one_sided(1 - fpr, 1 - tpr, delta).max()))
    return _evidence("multiple_hypothesis", Assurance.HEURISTIC, best, None, {}, tests.with_canary, tests.without)


def multiple_hypothesis_corrected(present: ArrayLike, absent: ArrayLike, delta: float, alpha: float) -> Evidence:
    """Heuristic: the best Clopper-Pearson bound over all thresholds, as if it had been the only one tried."""
    tests = sweep(present, absent)
    best = float(_scan(tests, delta, alpha).max())
    return _evidence(
        "multiple_hypothesis/clopper_pearson",
        Assurance.HEURISTIC,
        best,
        None,
        {"ceiling": ceiling(tests.with_canary, tests.without, delta, Split.TWO.gamma(alpha))},
        tests.with_canary,
        tests.without,
    )


def gdp_holdout(chosen: Half, reported: Half, delta: float, alpha: float) -> Evidence:
    """Heuristic: mu from one trade-off point on held-out models, read as an epsilon of a GDP mechanism.

    The mechanism's trade-off curve is not GDP (Poisson subsampling, hidden state), so nothing is proved.
    """
    tests = sweep(*chosen)
    threshold = float(tests.thresholds[int(mu_lower(tests, alpha).argmax())])
    tp, fp = (np.array([count]) for count in counts_at(*reported, threshold))
    n1, n0 = len(reported[0]), len(reported[1])
    mu = float(mu_lower(Sweep(np.array([threshold]), tp, fp, n1, n0), alpha)[0])
    return _evidence(
        "gdp_holdout", Assurance.HEURISTIC, gdp.eps(mu, delta), None, {"threshold": threshold, "mu": mu}, n1, n0
    )


def gdp_all(present: ArrayLike, absent: ArrayLike, delta: float, alpha: float) -> Evidence:
    """Heuristic: the largest such mu over all thresholds on the same models; the literature's headline figure."""
    tests = sweep(present, absent)
    mu = float(mu_lower(tests, alpha).max())
    return _evidence("gdp", Assurance.HEURISTIC, gdp.eps(mu, delta), None, {"mu": mu}, tests.with_canary, tests.without)


def mu_lower(tests: Sweep, alpha: float) -> Array:
    """(k,) ``max(0, Phi^-1(1 - fpr_U) - Phi^-1(fnr_U))`` with Clopper-Pearson bounds at alpha/2 each."""
    gamma = Split.TWO.gamma(alpha)
    fpr = clopper_pearson.upper(tests.fp, tests.without, gamma)
    fnr = clopper_pearson.upper(tests.with_canary - tests.tp, tests.with_canary, gamma)
    separable = (fpr < 1) & (fnr < 1)
    with np.errstate(invalid="ignore"):
        mu = ndtri(1 - fpr) - ndtri(fnr)
    return np.where(separable, np.maximum(mu, 0.0), 0.0)


def best_threshold(tests: Sweep, delta: float, alpha: float) -> float:
    """The threshold with the largest bound; among equals, for instance all 0, the one that separates best."""
    found = _scan(tests, delta, alpha)
    separation = tests.tp / tests.with_canary - tests.fp / tests.without
    return float(tests.thresholds[np.lexsort((separation, found))[-1]])


def null_means(models: int, repetitions: int, delta: float, alpha: float, rng: np.random.Generator) -> dict[str, float]:
    """What each convention gives on average when nothing leaks: both sides draw from one law, ``models`` each."""
    total: dict[str, float] = {}
    for _ in range(repetitions):
        for evidence in all_conventions(rng.random(models), rng.random(models), delta, alpha, rng):
            total[evidence.method] = total.get(evidence.method, 0.0) + evidence.eps_lower / repetitions
    return total


def require_models(*sides: int, least: int = LEAST_MODELS) -> None:
    """Refuses formal statements from too few models.

    Raises:
        StudyError: fewer than ``least`` on a side.
    """
    if min(sides) < least:
        raise StudyError(
            f"{min(sides)} models on one side are too few for a formal statement",
            where="audit.models",
            remedy=f"train at least {LEAST_MODELS} with and {LEAST_MODELS} without the canary",
        )


def _halved(present: ArrayLike, absent: ArrayLike, rng: np.random.Generator) -> tuple[Half, Half]:
    sides = [np.asarray(side, np.float64).ravel() for side in (present, absent)]
    parts = [halves(len(side), rng) for side in sides]
    first, second = ((sides[0][parts[0][half]], sides[1][parts[1][half]]) for half in (0, 1))
    return first, second


def _scan(tests: Sweep, delta: float, alpha: float) -> Array:
    return eps_lower_scan(tests.tp, tests.fp, tests.with_canary, tests.without, delta, alpha, Split.TWO)


def _one_sided(rate: Array, wrong: Array, delta: float) -> Array:
    """The bound where both rates were seen, else 0: an unbounded ratio is a lack of models, not of privacy."""
    seen = (wrong > 0) & (rate > delta)
    ratio = np.divide(rate - delta, wrong, out=np.ones_like(rate), where=seen)
    return np.log(np.maximum(ratio, 1.0))


def _evidence(
    method: str,
    assurance: Assurance,
    eps: float,
    confidence: float | None,
    details: dict[str, float],
    with_canary: int,
    without: int,
) -> Evidence:
    if not math.isfinite(eps):
        raise StudyError("the bound is not finite", where=method, remedy="needs scores that are numbers")
    counts = {"models_with": float(with_canary), "models_without": float(without)}
    return Evidence(
        method, assurance, eps, confidence, None, {**counts, **{key: float(v) for key, v in details.items()}}
    )
