"""One attack on one canary along one path of banks, from votes to evidence at every prefix.

Everything is conditional on the banks that came out. What adaptive replicas show, whose banks are generated anew in
each, holds without that condition: :func:`coalmine.auditor.rounds.replay.replicas_evidence`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from coalmine.auditor.audit import Settings, View, sampled
from coalmine.auditor.eps_bound import eps_lower
from coalmine.auditor.moments import moments
from coalmine.auditor.result import TradeOff
from coalmine.auditor.rounds import monte_carlo, variance_reduced
from coalmine.auditor.rounds.calibration import calibrate
from coalmine.auditor.rounds.composition import SumLaw, compose, exact_epsilons
from coalmine.auditor.rounds.curve import band_levels, trade_off
from coalmine.auditor.rounds.path import CONDITIONAL, ScoredRound
from coalmine.auditor.rounds.replay import replay_path
from coalmine.auditor.rounds.result import PathAudit, PrefixAudit
from coalmine.auditor.rounds.waterfall import composed_steps
from coalmine.auditor.score import Score, score
from coalmine.auditor.variance_reduced import Probabilities
from coalmine.auditor.variance_reduced import eps_lower as mean_bound
from coalmine.auditor.waterfall import Step, Waterfall
from coalmine.protocol.errors import StudyError
from coalmine.protocol.finding import Evidence
from coalmine.protocol.privacy import Assurance, Mechanism
from coalmine.protocol.randomness import Purpose, stream


@dataclass(frozen=True)
class _Found:
    """The evidence after some rounds in which the canary votes."""

    model: tuple[SumLaw, float] | None
    tpr: float
    fpr: float
    monte_carlo: Evidence
    variance_reduced: Evidence
    exact: Evidence
    trade_off: TradeOff


def audit_path(
    attack: str,
    canary: int,
    coordinates: str,
    vote_norms: Sequence[float],
    path: Sequence[Mapping[str, View]],
    mechanism: Mechanism,
    settings: Settings,
) -> PathAudit:
    """All evidence on ``coordinates`` after 1, ..., T rounds, and the exact value on the other coordinates.

    Score and thresholds come from auxiliary and calibration users on the same banks; test users only tell what there is
    to be found. ``settings.alpha`` is each prefix's own.

    Args:
        attack: its name. canary: its number.
        vote_norms: per round, L2 norm of the canary's clipped vote on the whole bank.
        path: per round, on the bank that came out, what is known on each set of coordinates; the same names throughout.

    Raises:
        StudyError: no round, or rounds that do not belong together.
        DataError: noise that vanishes against the votes.
    """
    if not path or len(vote_norms) != len(path) or any(set(views) != set(path[0]) for views in path):
        raise StudyError(
            "the rounds do not belong together", where="rounds", remedy="one norm and the same coordinates per round"
        )
    views = [views[coordinates] for views in path]
    scores = [_score(view, mechanism) for view in views]
    voting = [t for t, by in enumerate(scores) if by.signal > 0]
    heard_views, heard_scores = [views[t] for t in voting], [scores[t] for t in voting]
    found = [_nothing(), *_evidence(heard_views, heard_scores, f"{attack}/{canary}/rounds", mechanism, settings)]
    elsewhere = {
        name: exact_evidence([views[name] for views in path], mechanism) for name in path[0] if name != coordinates
    }
    steps = composed_steps(mechanism, vote_norms, [view.canary for view in views], [view.test for view in views])
    at_prefix = [found[heard] for heard in _heard(scores)]
    replays = replay_path(views, scores, [at.model for at in at_prefix], mechanism.delta, settings)
    return PathAudit(
        attack=attack,
        canary=canary,
        coordinates=coordinates,
        sizes=tuple(len(view.coordinates) for view in views),
        vote_norms=tuple(map(float, vote_norms)),
        audited_norms=tuple(float(np.linalg.norm(view.canary)) for view in views),
        mu_eff=tuple(by.mu_eff for by in scores),
        prefixes=tuple(
            PrefixAudit(
                rounds=t + 1,
                threshold=None if at.model is None else at.model[1],
                tpr=at.tpr,
                fpr=at.fpr,
                monte_carlo=at.monte_carlo,
                variance_reduced=at.variance_reduced,
                exact=at.exact,
                exact_elsewhere={name: values[t] for name, values in elsewhere.items()},
                waterfall=Waterfall((*steps[t], *_last_steps(at))),
                trade_off=at.trade_off,
                replay=replays[t],
            )
            for t, at in enumerate(at_prefix)
        ),
    )


def exact_evidence(views: Sequence[View], mechanism: Mechanism) -> tuple[Evidence, ...]:
    """Per prefix the exact epsilon of the summed score over the true test users."""
    scores = [_score(view, mechanism) for view in views]
    rounds = [ScoredRound.among(by, view.test) for by, view in zip(scores, views, strict=True) if by.signal > 0]
    values = [_silence(), *(_exact(rounds, mechanism.delta) if rounds else ())]
    return tuple(values[heard] for heard in _heard(scores))


def _score(view: View, mechanism: Mechanism) -> Score:
    return score(moments(view.auxiliary, len(view.test), mechanism), view.canary, mechanism)


def _heard(scores: Sequence[Score]) -> list[int]:
    """Per prefix, in how many of its rounds the canary votes on the coordinates."""
    return [int(heard) for heard in np.cumsum([by.signal > 0 for by in scores])]


def _evidence(
    views: Sequence[View],
    scores: Sequence[Score],
    name: str,
    mechanism: Mechanism,
    settings: Settings,
) -> list[_Found]:
    """After each of the rounds, in all of which the canary votes."""
    if not views:
        return []
    delta, alpha, split = mechanism.delta, settings.alpha, settings.split
    path = [ScoredRound.among(by, view.test) for by, view in zip(scores, views, strict=True)]
    stand_ins = [
        ScoredRound.standing_in(by, view.calibration, len(view.test)) for by, view in zip(scores, views, strict=True)
    ]
    designed = compose(stand_ins)
    thresholds = calibrate(designed, settings.trials, settings.terms(delta))
    plans = variance_reduced.plan(
        stand_ins,
        designed,
        trials=settings.reduced_trials,
        delta=delta,
        alpha=alpha,
        split=split,
        rng=stream(settings.seed, Purpose.CALIBRATION, user=name),
    )
    laws = compose(path)
    levels = [np.append(at.value, band_levels(law)) for at, law in zip(thresholds, laws, strict=True)]
    counts = monte_carlo.count(
        path, levels, settings.trials, settings.seed, name=f"{name}/projected", threads=settings.threads
    )
    reduced = _reduced(path, plans, name, settings)
    found = []
    for t, exact in enumerate(_exact(path, delta)):
        tp, fp = counts.tp[t], counts.fp[t]
        counted = eps_lower(int(tp[0]), int(fp[0]), counts.trials, counts.trials, delta, alpha, split)
        weighed = mean_bound(reduced[t], delta, alpha, split)
        found.append(
            _Found(
                model=(laws[t], thresholds[t].value),
                tpr=float(tp[0]) / counts.trials,
                fpr=float(fp[0]) / counts.trials,
                monte_carlo=_conditional(sampled("projected", counted, alpha, counts.trials)),
                variance_reduced=_conditional(sampled("projected", weighed, alpha, settings.reduced_trials)),
                exact=exact,
                trade_off=trade_off(laws[t], thresholds[t].value, tp[1:], fp[1:], counts.trials, alpha),
            )
        )
    return found


def _reduced(
    path: Sequence[ScoredRound], plans: Sequence[variance_reduced.Plan], name: str, settings: Settings
) -> list[Probabilities]:
    """Per prefix the values drawn as its plan says; prefixes with the same proposals share their draws."""
    thresholds = [each.threshold for each in plans]
    by_proposals = {
        proposals: variance_reduced.draw(
            path,
            proposals,
            thresholds,
            settings.reduced_trials,
            settings.seed,
            name=f"{name}/reduced",
            threads=settings.threads,
        )
        for proposals in {each.proposals for each in plans}
    }
    return [by_proposals[each.proposals][t] for t, each in enumerate(plans)]


def _exact(path: Sequence[ScoredRound], delta: float) -> list[Evidence]:
    return [
        Evidence(
            f"exact composition, {CONDITIONAL}",
            Assurance.EXACT,
            value.lower,
            None,
            value.error,
            {"rounding": value.rounding},
        )
        for value in exact_epsilons(path, delta)
    ]


def _conditional(evidence: Evidence) -> Evidence:
    return replace(evidence, method=f"{evidence.method}, {CONDITIONAL}")


def _silence() -> Evidence:
    """The canary casts no vote on the audited coordinates: their releases have one law, so epsilon is 0, exactly."""
    return Evidence(f"no vote on the coordinates, {CONDITIONAL}", Assurance.EXACT, 0.0, None, 0.0)


def _nothing() -> _Found:
    silence = _silence()
    flat = TradeOff((0.0, 1.0), (0.0, 1.0), (), (), (), (), 1.0, (0.0, 0.0))
    return _Found(None, 0.0, 0.0, silence, silence, silence, flat)


def _last_steps(found: _Found) -> tuple[Step, Step]:
    return (
        Step(
            "estimated design",
            found.exact.eps_lower,
            "The scores are designed on auxiliary users instead.",
            Assurance.EXACT,
            found.exact.error,
        ),
        Step(
            "finite trials",
            found.monte_carlo.eps_lower,
            "What finitely many trials certify with confidence.",
            found.monte_carlo.assurance,
        ),
    )
