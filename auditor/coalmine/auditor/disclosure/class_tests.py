"""All tests of one class of features, on all users or without the inserted canaries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.disclosure.assignment import Assignment
from coalmine.auditor.disclosure.feature_class import Matches, Similarities
from coalmine.auditor.disclosure.feature_match import FeatureMatch, feature_match, hoeffding_test, log_p_value
from coalmine.auditor.disclosure.power import Power, power, power_without_matches
from coalmine.auditor.disclosure.result import ClassTests, Sweep
from coalmine.auditor.disclosure.roc import roc
from coalmine.auditor.disclosure.settings import Settings
from coalmine.auditor.disclosure.two_sample import two_sample
from coalmine.auditor.disclosure.user_match import Rule, UserMatch, by_count, by_grid, by_mask, by_split, p_value
from coalmine.auditor.disclosure.weighted_sum import Weights, weights
from coalmine.protocol.randomness import Purpose, stream

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Users:
    """Who is tested.

    Attributes:
        train: (n,). assignment: of all n. kept: (n,) who counts; the others have neither matches nor scores.
        name: of the random streams of these tests.
    """

    train: Mask
    assignment: Assignment
    kept: Mask
    name: str


def run_on_matches(found: Sequence[Matches], users: Users, settings: Settings) -> ClassTests:
    """Tests of a discrete class. A user is guessed to be in train if it holds a match, which nobody had to choose.

    Raises:
        StudyError: delta > 0 where no formula is known.
    """
    sweeps = []
    for one in found:
        each = one.per_user(len(users.train)) * users.kept
        match = feature_match(each, users.train, users.assignment, settings.alpha) if each.any() else None
        sweeps.append(Sweep(one.k, len(one.features), match))
    each = found[0].per_user(len(users.train)) * users.kept
    scores = np.where(users.kept, each, np.nan).astype(float)
    return ClassTests(
        tuple(sweeps),
        (),
        by_mask(each > 0, users.train, users.assignment, settings.alpha, settings.delta),
        roc(scores, users.train, _stream(settings, users, "roc")),
    )


def run_on_similarities(found: Similarities, users: Users, settings: Settings) -> ClassTests:
    """Tests of a similarity class. The score of a user is the cosine to its nearest synthetic record.

    Raises:
        StudyError: delta > 0 where no formula is known.
    """
    scores = np.where(users.kept, found.nearest[:, 0], np.nan)
    rarity = np.where(users.kept & ~np.isnan(scores), found.rarity, np.nan)
    compared = [
        two_sample(found.nearest, rarity, users.train, share, _stream(settings, users, f"two-sample {share}"))
        for share in settings.rarities
    ]
    return ClassTests(
        (),
        tuple(one for one in compared if one is not None),
        _guess(scores, users, settings),
        roc(scores, users.train, _stream(settings, users, "roc")),
    )


def _guess(scores: Array, users: Users, settings: Settings) -> UserMatch | None:
    generator = _stream(settings, users, "user-match")
    known = int((~np.isnan(scores)).sum())
    common = (users.train, users.assignment, settings.alpha)
    match settings.rule:
        case Rule.DECLARED:
            return by_count(scores, _share(settings.guess_share, known), *common, generator, settings.delta)
        case Rule.SPLIT:
            return by_split(scores, *common, generator)
        case Rule.GRID:
            return by_grid(scores, [_share(share, known) for share in settings.grid], *common, generator)


def _share(share: float, users: int) -> int:
    return min(users, max(1, round(share * users)))


def class_power(tests: ClassTests, assignment: Assignment, alpha: float, declared: int) -> Power:
    """What the class's count test could have found at its share ``alpha / declared`` of the level."""
    level = alpha / max(1, declared)
    counted = _counts(tests)
    if counted is None:
        return power_without_matches(assignment.p, assignment.users, level)
    d, seen = counted
    upper = hoeffding_test(d, seen, assignment.p, alpha).p_upper
    return power(d, assignment.p, upper, assignment.users, level)


def claim_p_value(tests: ClassTests, assignment: Assignment, eps: float) -> float | None:
    """The largest probability that eps-DP allows for what was counted; ``None`` where nothing was.

    Feature match for discrete classes, user match (with its correction for several tries) for similarity.
    """
    if tests.sweeps:
        match = tests.sweeps[0].match
        return None if match is None else math.exp(log_p_value(_weights(match), match.train, assignment, eps))
    guessed = tests.user_match
    if guessed is None:
        return None
    return min(1.0, guessed.tries * p_value(guessed.guesses, guessed.correct, assignment, eps))


def _counts(tests: ClassTests) -> tuple[Weights, int] | None:
    if tests.sweeps:
        match = tests.sweeps[0].match
        return None if match is None else (_weights(match), match.train)
    guessed = tests.user_match
    return None if guessed is None else (weights(np.ones(guessed.guesses, np.int64)), guessed.correct)


def _weights(match: FeatureMatch) -> Weights:
    return weights(np.repeat([size for size, _ in match.weights], [count for _, count in match.weights]))


def _stream(settings: Settings, users: Users, test: str) -> np.random.Generator:
    return stream(settings.seed, Purpose.DISCLOSURE, user=f"{users.name}/{test}")
