"""Where the distance to the ceiling goes."""

from itertools import pairwise

import numpy as np
import pytest

from coalmine.auditor.exact import exact_epsilon
from coalmine.auditor.ideal import ideal_epsilon
from coalmine.auditor.moments import moments
from coalmine.auditor.score import score
from coalmine.auditor.waterfall import waterfall
from coalmine.protocol.privacy import Assurance, Mechanism

MECHANISM = Mechanism(sigma=0.8)
CANARY = np.full(8, 0.02)
NORM = 0.09


def votes(seed, users):
    rng = np.random.default_rng(seed)
    return rng.random((users, 8)) * (rng.random((users, 8)) < 0.3) * 0.03


def test_every_step_is_the_epsilon_it_names():
    test, auxiliary = votes(1, 120), moments(votes(2, 60), 120, MECHANISM)
    steps = waterfall(MECHANISM, NORM, CANARY, test, auxiliary, 0.3).steps
    q, delta = MECHANISM.q, MECHANISM.delta
    audited = float(np.linalg.norm(CANARY))

    def among(background):
        by = score(background, CANARY, MECHANISM)
        return exact_epsilon(test @ by.direction, by.direction @ CANARY, by.noise_std, q, delta).lower

    expected = [
        ideal_epsilon(1 / 0.8, q, delta),
        ideal_epsilon(NORM / 0.08, q, delta),
        ideal_epsilon(audited / 0.08, q, delta),
        among(moments(test, 120, MECHANISM)),
        among(auxiliary),
        0.3,
    ]
    assert [step.eps for step in steps] == pytest.approx(expected, abs=1e-12)
    assert [step.assurance for step in steps] == [Assurance.EXACT] * 5 + [Assurance.FORMAL]
    assert all(step.error <= 1e-7 for step in steps[:5])
    assert steps[5].error is None
    assert len({step.name for step in steps}) == 6
    assert all(above.eps > below.eps for above, below in pairwise(steps[:4]))


def test_without_others_only_what_the_canary_itself_lacks_is_lost():
    alone = moments(np.empty((0, 8)), 0, MECHANISM)
    full = np.full(8, 0.1 / np.sqrt(8))
    steps = waterfall(MECHANISM, 0.1, full, np.empty((0, 8)), alone, 0.5).steps
    assert [step.eps for step in steps[:5]] == pytest.approx([ideal_epsilon(1 / 0.8, 0.1, 1e-5)] * 5, abs=1e-9)


def test_a_step_may_go_up_and_is_kept():
    test = votes(1, 120)
    hidden = moments(votes(2, 60) * np.array([30.0] * 4 + [0.0] * 4), 120, MECHANISM)
    steps = waterfall(MECHANISM, NORM, CANARY, test, hidden, 9.0).steps
    assert steps[5].eps > steps[4].eps
    assert steps[4].eps != steps[3].eps


def test_a_canary_that_misses_the_coordinates_shows_nothing():
    steps = waterfall(MECHANISM, NORM, np.zeros(8), votes(1, 20), moments(votes(2, 20), 20, MECHANISM), 0.0).steps
    assert [step.eps for step in steps[2:]] == [0, 0, 0, 0]
