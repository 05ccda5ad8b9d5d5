"""One attack on one canary, from votes to evidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import kolmogorov

from coalmine.auditor import clopper_pearson, monte_carlo, variance_reduced
from coalmine.auditor.calibration import Threshold, calibrate, calibrate_reduced
from coalmine.auditor.eps_bound import EpsBound, Split, Terms, eps_lower
from coalmine.auditor.exact import exact_epsilon, tpr_fpr
from coalmine.auditor.moments import Moments, moments
from coalmine.auditor.result import CanaryAudit, ProbeVotes, Replay, TradeOff
from coalmine.auditor.score import Score, score
from coalmine.auditor.waterfall import waterfall
from coalmine.protocol.finding import Evidence
from coalmine.protocol.privacy import Assurance, Mechanism
from coalmine.protocol.randomness import Purpose, stream

Array = NDArray[np.float64]
_CURVE = 201
_BAND = 13


@dataclass(frozen=True)
class Settings:
    """How sure, and how hard to try.

    Attributes:
        alpha: failure probability of one canary's bound (the family's share already taken).
        split: how alpha is shared by the bounds. trials: per hypothesis, Clopper-Pearson.
        reduced_trials: per hypothesis, variance-reduced. seed: of the Monte-Carlo streams. threads: speed only.
    """

    alpha: float
    split: Split
    trials: int
    reduced_trials: int
    seed: int
    threads: int | None = None

    def terms(self, delta: float) -> Terms:
        """Of one canary's bound."""
        return Terms(delta, self.alpha, self.split)


@dataclass(frozen=True)
class View:
    """What is known of one audited round on one set of coordinates.

    Attributes:
        coordinates: (r,) bank indices. canary: (r,) the canary's clipped vote there.
        auxiliary, calibration, test: (n, r) clipped votes of those users there; ``test`` is known to a simulation only.
        absent, eligible: (trials, r) releases of real rounds without and with the canary eligible, or empty.
    """

    coordinates: NDArray[np.int64]
    canary: Array
    auxiliary: Array
    calibration: Array
    test: Array
    absent: Array
    eligible: Array


def audit_canary(
    attack: str,
    canary: int,
    coordinates: str,
    vote_norm: float,
    views: dict[str, View],
    mechanism: Mechanism,
    settings: Settings,
) -> CanaryAudit:
    """All evidence on ``views[coordinates]``, and the exact value on the other views.

    Args:
        attack: its name. canary: its number. vote_norm: L2 norm of the canary's clipped vote on the whole bank.
        views: by name of the coordinates.
    """
    view = views[coordinates]
    population = len(view.test)
    background = moments(view.auxiliary, population, mechanism)
    by = score(background, view.canary, mechanism)
    if by.signal == 0:
        return _unseen(attack, canary, coordinates, vote_norm, views, background, mechanism)
    projections = by.project(view.test)
    name = f"{attack}/{canary}"
    terms = settings.terms(mechanism.delta)
    threshold = calibrate(by, view.calibration, population, settings.trials, terms)
    pilot = stream(settings.seed, Purpose.CALIBRATION, user=name)
    sharper = calibrate_reduced(by, view.calibration, population, settings.reduced_trials, terms, pilot)
    levels = np.concatenate([[threshold.value], _band_levels(by, projections)])
    counts = monte_carlo.count(
        projections,
        by.signal,
        by.noise_std,
        by.q,
        levels,
        settings.trials,
        settings.seed,
        name=f"{name}/projected",
        threads=settings.threads,
    )
    bound = eps_lower(
        int(counts.tp[0]),
        int(counts.fp[0]),
        counts.trials,
        counts.trials,
        mechanism.delta,
        settings.alpha,
        settings.split,
    )
    drawn = variance_reduced.draw(
        projections,
        by.signal,
        by.noise_std,
        by.q,
        sharper,
        settings.reduced_trials,
        settings.seed,
        name=f"{name}/reduced",
        threads=settings.threads,
    )
    reduced = variance_reduced.eps_lower(drawn, mechanism.delta, settings.alpha, settings.split)
    return CanaryAudit(
        attack=attack,
        canary=canary,
        coordinates=coordinates,
        size=len(view.coordinates),
        vote_norm=vote_norm,
        audited_norm=float(np.linalg.norm(view.canary)),
        mu_eff=by.mu_eff,
        tpr=float(counts.tp[0]) / counts.trials,
        fpr=float(counts.fp[0]) / counts.trials,
        monte_carlo=sampled("projected", bound, settings.alpha, counts.trials),
        variance_reduced=sampled("projected", reduced, settings.alpha, settings.reduced_trials),
        exact=exact_evidence(view, by, mechanism),
        exact_elsewhere=_elsewhere(coordinates, views, mechanism),
        waterfall=waterfall(mechanism, vote_norm, view.canary, view.test, background, bound.eps_lower),
        trade_off=_trade_off(by, projections, threshold, counts, settings.alpha),
        probe_votes=_probe_votes(view.canary, background, mechanism),
        replay=_replay(view, by, projections, threshold, mechanism, settings),
    )


def _unseen(
    attack: str,
    canary: int,
    coordinates: str,
    vote_norm: float,
    views: dict[str, View],
    background: Moments,
    mechanism: Mechanism,
) -> CanaryAudit:
    """The canary casts no vote on the audited coordinates: their release has one law, so epsilon is 0, exactly."""
    view = views[coordinates]
    nothing = Evidence("no vote on the coordinates", Assurance.EXACT, 0.0, None, 0.0)
    return CanaryAudit(
        attack=attack,
        canary=canary,
        coordinates=coordinates,
        size=len(view.coordinates),
        vote_norm=vote_norm,
        audited_norm=0.0,
        mu_eff=0.0,
        tpr=0.0,
        fpr=0.0,
        monte_carlo=nothing,
        variance_reduced=nothing,
        exact=nothing,
        exact_elsewhere=_elsewhere(coordinates, views, mechanism),
        waterfall=waterfall(mechanism, vote_norm, view.canary, view.test, background, 0.0),
        trade_off=TradeOff((0.0, 1.0), (0.0, 1.0), (), (), (), (), 1.0, (0.0, 0.0)),
        probe_votes=_probe_votes(view.canary, background, mechanism),
    )


def _elsewhere(coordinates: str, views: dict[str, View], mechanism: Mechanism) -> dict[str, Evidence]:
    """The exact evidence on every other set of coordinates."""
    return {
        name: exact_evidence(
            view, score(moments(view.auxiliary, len(view.test), mechanism), view.canary, mechanism), mechanism
        )
        for name, view in views.items()
        if name != coordinates
    }


def exact_evidence(view: View, by: Score, mechanism: Mechanism) -> Evidence:
    """The epsilon of the score over the true test users."""
    value = exact_epsilon(by.project(view.test), by.signal, by.noise_std, by.q, mechanism.delta)
    return Evidence("exact", Assurance.EXACT, value.lower, None, value.error, {"mu_eff": by.mu_eff})


def sampled(form: str, bound: EpsBound, alpha: float, trials: int) -> Evidence:
    return Evidence(
        f"{form}/{bound.method}/{bound.split.value}",
        Assurance.FORMAL,
        bound.eps_lower,
        1 - alpha,
        None,
        {
            "trials": float(trials),
            "tpr_lower": bound.tpr_lower,
            "fpr_upper": bound.fpr_upper,
            "tnr_lower": bound.tnr_lower,
            "fnr_upper": bound.fnr_upper,
        },
    )


def _span(by: Score, projections: Array) -> tuple[float, float]:
    """Mean and standard deviation of T without the canary."""
    mean = by.q * float(projections.sum())
    return mean, float(np.sqrt(by.noise_std**2 + by.q * (1 - by.q) * float(projections @ projections)))


def _band_levels(by: Score, projections: Array) -> Array:
    mean, std = _span(by, projections)
    return np.linspace(mean - 3 * std, mean + by.signal + 3 * std, _BAND)


def _trade_off(
    by: Score, projections: Array, threshold: Threshold, counts: monte_carlo.Counts, alpha: float
) -> TradeOff:
    mean, std = _span(by, projections)
    grid = np.linspace(mean + by.signal + 5 * std, mean - 5 * std, _CURVE)
    rates = tpr_fpr(projections, by.signal, by.noise_std, by.q, np.append(grid, threshold.value))
    return TradeOff(
        fpr=tuple(rates.fpr[:-1].tolist()),
        tpr=tuple(rates.tpr[:-1].tolist()),
        sampled_fpr=tuple((counts.fp[1:] / counts.trials).tolist()),
        sampled_tpr=tuple((counts.tp[1:] / counts.trials).tolist()),
        tpr_low=tuple(clopper_pearson.lower(counts.tp[1:], counts.trials, alpha / 2).tolist()),
        tpr_high=tuple(clopper_pearson.upper(counts.tp[1:], counts.trials, alpha / 2).tolist()),
        confidence=1 - alpha,
        chosen=(float(rates.fpr[-1]), float(rates.tpr[-1])),
    )


def _probe_votes(canary: Array, background: Moments, mechanism: Mechanism) -> ProbeVotes:
    order = np.argsort(-canary, kind="stable")
    users = np.sqrt(np.maximum(np.diag(background.covariance) - mechanism.noise_std**2, 0.0))
    return ProbeVotes(
        canary=tuple(canary[order].tolist()),
        background_mean=tuple(background.mean[order].tolist()),
        background_std=tuple(users[order].tolist()),
        noise_std=mechanism.noise_std,
    )


def _replay(
    view: View, by: Score, projections: Array, threshold: Threshold, mechanism: Mechanism, settings: Settings
) -> Replay | None:
    """Real rounds against the model: were their scores drawn from the distribution that the exact audit computes?"""
    if not len(view.absent):
        return None
    absent, eligible = by.project(view.absent), by.project(view.eligible)
    trials = len(absent)
    modelled = [
        tpr_fpr(projections, by.signal, by.noise_std, by.q, scores) for scores in (np.sort(absent), np.sort(eligible))
    ]
    bound = eps_lower(
        int((eligible > threshold.value).sum()),
        int((absent > threshold.value).sum()),
        trials,
        trials,
        mechanism.delta,
        settings.alpha,
        settings.split,
    )
    return Replay(
        trials=trials,
        p_absent=uniformity(1 - modelled[0].fpr),
        p_eligible=uniformity(1 - modelled[1].tpr),
        eps_lower=bound.eps_lower,
    )


def uniformity(levels: Array) -> float:
    """Kolmogorov-Smirnov p-value of sorted (n,) values against the uniform law (Stephens' small-sample correction)."""
    n = len(levels)
    above = float(np.max(np.arange(1, n + 1) / n - levels))
    below = float(np.max(levels - np.arange(n) / n))
    root = np.sqrt(n)
    return float(kolmogorov((root + 0.12 + 0.11 / root) * max(above, below)))
