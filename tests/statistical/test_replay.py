"""Real rounds against the model: p-values are uniform where the model holds and vanish where the noise is wrong."""

import numpy as np
import pytest
from scipy.stats import binom, kstest

from coalmine.auditor.audit import Settings, View, audit_canary
from coalmine.auditor.eps_bound import Split
from coalmine.protocol.privacy import Mechanism

pytestmark = pytest.mark.statistical

MECHANISM = Mechanism(q=0.3, sigma=0.8)
SETTINGS = Settings(alpha=0.01, split=Split.TWO, trials=200, reduced_trials=50, seed=0, threads=1)
CANARY = np.array([0.08, 0.05, 0.02])
USERS, REPEATS = 25, 20
SAFE = 1e-8


def replayed(rng, rounds, noise=1.0, q=MECHANISM.q, absentee=False):
    """One audit whose replays are drawn the plain way: every user a coin, the noise a normal."""
    r = len(CANARY)
    auxiliary, calibration, test = (rng.random((USERS, r)) * (rng.random((USERS, r)) < 0.3) * 0.06 for _ in range(3))

    def releases(eligible):
        crowd = (rng.random((rounds, USERS)) < q) @ test
        canary = eligible * (rng.random((rounds, 1)) < q) * CANARY
        return crowd + canary + noise * MECHANISM.noise_std * rng.normal(size=(rounds, r))

    view = View(np.arange(r), CANARY, auxiliary, calibration, test, releases(False), releases(not absentee))
    found = audit_canary("exact", 1, "probes", 0.1, {"probes": view}, MECHANISM, SETTINGS).replay
    assert found.trials == rounds
    return found


def test_p_values_are_uniform_where_the_model_holds():
    rng = np.random.default_rng(4)
    replays = [replayed(rng, 64) for _ in range(REPEATS)]
    for values in ([r.p_absent for r in replays], [r.p_eligible for r in replays]):
        assert kstest(values, "uniform").pvalue > SAFE
        assert np.sum(np.array(values) < 0.05) <= binom.isf(SAFE, REPEATS, 0.05)


def test_many_rounds_agree_with_the_model():
    found = replayed(np.random.default_rng(8), 8000)
    assert min(found.p_absent, found.p_eligible) > SAFE


@pytest.mark.parametrize("noise", [2 / 3, 3 / 2])
def test_wrong_noise_is_noticed_in_both_directions(noise):
    found = replayed(np.random.default_rng(5), 8000, noise)
    assert found.p_absent < 1e-9
    assert found.p_eligible < 1e-9


def test_a_larger_participation_rate_is_noticed():
    found = replayed(np.random.default_rng(6), 8000, q=0.6)
    assert found.p_absent < 1e-9


def test_a_canary_that_never_takes_part_is_noticed():
    found = replayed(np.random.default_rng(7), 8000, absentee=True)
    assert found.p_absent > SAFE
    assert found.p_eligible < 1e-9
