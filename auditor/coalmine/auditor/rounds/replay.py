"""Real rounds: through shards, aggregator and noise, on given banks (replays) or on banks of their own (replicas)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coalmine.auditor.audit import Settings, View, sampled, uniformity
from coalmine.auditor.background import Array
from coalmine.auditor.eps_bound import Split, eps_lower
from coalmine.auditor.result import Replay
from coalmine.auditor.rounds.composition import SumLaw
from coalmine.auditor.score import Score
from coalmine.protocol.errors import StudyError
from coalmine.protocol.finding import Evidence


def replay_path(
    views: Sequence[View],
    scores: Sequence[Score],
    modelled: Sequence[tuple[SumLaw, float] | None],
    delta: float,
    settings: Settings,
) -> tuple[Replay | None, ...]:
    """Per prefix: were the real rounds' sums drawn from the law that the exact audit computes?

    Args:
        views: per round, with real releases on its bank in ``absent`` and ``eligible``, equally many in every round.
        scores: per round. modelled: per prefix the law of the sum and the threshold; ``None`` before the first vote.

    Returns:
        ``None`` per prefix where there is no release or no vote.

    Raises:
        StudyError: not equally many releases.
    """
    numbers = {len(releases) for view in views for releases in (view.absent, view.eligible)}
    if len(numbers) != 1:
        raise StudyError(
            "the rounds were not replayed equally often", where="replays", remedy="as many for every round"
        )
    (trials,) = numbers
    if not trials:
        return (None,) * len(views)
    sums = np.cumsum(
        [[by.ell_mix(view.absent), by.ell_mix(view.eligible)] for by, view in zip(scores, views, strict=True)],
        axis=0,
    )
    found: list[Replay | None] = []
    for (absent, eligible), model in zip(sums, modelled, strict=True):
        if model is None:
            found.append(None)
            continue
        law, threshold = model
        bound = eps_lower(
            int((eligible > threshold).sum()),
            int((absent > threshold).sum()),
            trials,
            trials,
            delta,
            settings.alpha,
            settings.split,
        )
        found.append(
            Replay(
                trials=trials,
                p_absent=uniformity(1 - law.rates(np.sort(absent)).fpr),
                p_eligible=uniformity(1 - law.rates(np.sort(eligible)).tpr),
                eps_lower=bound.eps_lower,
            )
        )
    return tuple(found)


def replicas_evidence(
    absent: Array, eligible: Array, thresholds: Sequence[float], delta: float, alpha: float, split: Split
) -> tuple[Evidence, ...]:
    """What adaptive replicas prove: whole runs, each with banks generated from its own releases.

    Not conditional on any banks. Each replica's score is designed on auxiliary users on its own banks; the thresholds
    are fixed beforehand, for instance on the calibration users of another path.

    Args:
        absent, eligible: (T, n) sums of ``ell_mix`` after each round, without the canary and with it eligible.
        thresholds: one per prefix. alpha: each prefix's own.

    Raises:
        StudyError: shapes differ, or a value out of its range.
    """
    if absent.ndim != 2 or eligible.ndim != 2 or not len(absent) == len(eligible) == len(thresholds):
        raise StudyError("replicas and thresholds do not match", where="replicas", remedy="one row per prefix")
    found = []
    for without, with_canary, threshold in zip(absent, eligible, thresholds, strict=True):
        bound = eps_lower(
            int((with_canary > threshold).sum()),
            int((without > threshold).sum()),
            len(with_canary),
            len(without),
            delta,
            alpha,
            split,
        )
        found.append(sampled("adaptive replicas", bound, alpha, min(len(without), len(with_canary))))
    return tuple(found)
