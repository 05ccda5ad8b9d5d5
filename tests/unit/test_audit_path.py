"""One attack on one canary along a path of banks, on small synthetic rounds."""

from dataclasses import replace

import numpy as np
import pytest

from coalmine.auditor.audit import Settings, View, audit_canary
from coalmine.auditor.eps_bound import Split
from coalmine.auditor.rounds.audit import audit_path
from coalmine.auditor.rounds.path import CONDITIONAL
from coalmine.auditor.rounds.replay import replicas_evidence
from coalmine.protocol import accounting
from coalmine.protocol.errors import StudyError
from coalmine.protocol.privacy import Assurance, Mechanism

MECHANISM = Mechanism(q=0.2, sigma=0.7)
SETTINGS = Settings(alpha=0.01, split=Split.TWO, trials=200_000, reduced_trials=30_000, seed=3, threads=1)
CANARY = np.array([0.08, 0.04, 0.02, 0.0, 0.03])
NORM = 0.0995
REPLAYS = 300


def view(seed, canary=CANARY, replays=REPLAYS, noise=1.0, users=60):
    """With releases drawn from the mechanism, or with another level of noise."""
    rng = np.random.default_rng(seed)
    r = len(canary)

    def votes():
        return rng.random((users, r)) * (rng.random((users, r)) < 0.2) * 0.05

    test = votes()

    def releases(eligible):
        cohorts = rng.random((replays, users)) < MECHANISM.q
        guest = eligible * (rng.random((replays, 1)) < MECHANISM.q)
        return cohorts @ test + guest * canary + rng.normal(0, noise * MECHANISM.noise_std, (replays, r))

    return View(np.arange(10, 10 + r), canary, votes(), votes(), test, releases(False), releases(True))


def audit(path, settings=SETTINGS, coordinates="probes"):
    return audit_path("nonce", 2, coordinates, [NORM] * len(path), path, MECHANISM, settings)


@pytest.fixture(scope="module")
def path():
    wider = np.append(CANARY, [0.01, 0.02])
    return [{"probes": view(t), "support": view(10 + t, wider)} for t in range(3)]


@pytest.fixture(scope="module")
def found(path):
    return audit(path)


def test_what_is_certified_stays_below_what_is_exact_and_that_below_the_claim(found):
    assert [each.rounds for each in found.prefixes] == [1, 2, 3]
    for each in found.prefixes:
        promised = accounting.pld_epsilon(0.2, 0.7, each.rounds, 1e-5)[1]
        assert 0 < each.monte_carlo.eps_lower <= each.exact.eps_lower < promised
        assert 0 < each.variance_reduced.eps_lower <= each.exact.eps_lower
        assert 0 < each.exact_elsewhere["support"].eps_lower < promised
    claim = accounting.claim(MECHANISM, 3)
    last = found.prefixes[2]
    assert last.tightness(claim) == last.exact.eps_lower / claim.eps_prv
    assert found.prefixes[2].exact.eps_lower > found.prefixes[0].exact.eps_lower


def test_the_first_prefix_is_the_single_rounds_audit(found, path):
    single = audit_canary("nonce", 2, "probes", NORM, path[0], MECHANISM, SETTINGS)
    first = found.prefixes[0]
    assert first.exact.eps_lower == pytest.approx(single.exact.eps_lower, abs=2e-5)
    assert first.monte_carlo.eps_lower == pytest.approx(single.monte_carlo.eps_lower, rel=0.1)
    # Many rounds cut the others' reach at a probability that they add to the FPR, and so certify a little more.
    assert 0.9 * single.variance_reduced.eps_lower < first.variance_reduced.eps_lower < single.exact.eps_lower
    for ours, theirs in zip(first.waterfall.steps[:-1], single.waterfall.steps[:-1], strict=True):
        assert ours.name == theirs.name
        assert ours.eps == pytest.approx(theirs.eps, abs=1e-4)


def test_everything_says_on_what_it_is_conditional_and_how_it_was_found(found):
    for each in found.prefixes:
        assert all(CONDITIONAL in evidence.method for evidence in each.evidence)
        assert [evidence.assurance for evidence in each.evidence] == [
            Assurance.FORMAL,
            Assurance.FORMAL,
            Assurance.EXACT,
        ]
        assert [evidence.confidence for evidence in each.evidence] == [0.99, 0.99, None]
        assert each.waterfall.steps[-2].eps == each.exact.eps_lower
        assert each.waterfall.steps[-1].eps == each.monte_carlo.eps_lower
        assert each.waterfall.steps[0].eps <= accounting.pld_epsilon(0.2, 0.7, each.rounds, 1e-5)[1]


def test_observed_rates_lie_on_the_exact_curve(found):
    for each in found.prefixes:
        curve = each.trade_off
        assert (np.diff(curve.fpr) >= 0).all()
        exact = np.interp(curve.sampled_fpr, curve.fpr, curve.tpr)
        assert np.abs(exact - curve.sampled_tpr).max() < 0.01
        assert (np.array(curve.tpr_low) <= np.array(curve.tpr_high)).all()


def test_thresholds_do_not_depend_on_test_users(found, path):
    strangers = [
        {
            name: replace(each, test=np.random.default_rng(5).random(each.test.shape) * 0.01)
            for name, each in views.items()
        }
        for views in path
    ]
    other = audit(strangers)
    assert [each.threshold for each in other.prefixes] == [each.threshold for each in found.prefixes]
    assert other.prefixes[2].exact.eps_lower != found.prefixes[2].exact.eps_lower


def test_a_round_without_a_vote_adds_nothing(path):
    nothing = np.zeros(len(CANARY))
    silent = [{"probes": view(20, nothing)}, {"probes": path[0]["probes"]}, {"probes": view(21, nothing)}]
    first, second, third = audit(silent).prefixes
    assert first.exact.eps_lower == first.monte_carlo.eps_lower == 0
    assert first.threshold is None
    assert first.replay is None
    assert second.exact.eps_lower == third.exact.eps_lower > 0
    assert third.monte_carlo == second.monte_carlo
    assert audit(silent[:1]).prefixes[0].exact.eps_lower == 0


def test_real_rounds_are_compared_with_the_law_of_the_sum(found):
    for each in found.prefixes:
        assert each.replay is not None
        assert each.replay.trials == REPLAYS
        assert min(each.replay.p_absent, each.replay.p_eligible) > 1e-4
    loud = audit([{"probes": view(t, noise=2.0)} for t in range(2)])
    assert loud.prefixes[1].replay.p_absent < 1e-9
    assert audit([{"probes": view(0, replays=0)}]).prefixes[0].replay is None


def test_replicas_are_counted_at_thresholds_fixed_beforehand():
    absent, eligible = np.zeros((2, 1000)), np.zeros((2, 1000))
    absent[1, :5], eligible[1, :400] = 1.0, 1.0
    first, second = replicas_evidence(absent, eligible, [0.5, 0.5], 1e-5, 0.01, Split.TWO)
    assert first.eps_lower == 0
    assert 3 < second.eps_lower < np.log(400 / 5)
    assert CONDITIONAL not in second.method
    with pytest.raises(StudyError):
        replicas_evidence(absent, eligible, [0.5], 1e-5, 0.01, Split.TWO)


def test_rounds_that_do_not_belong_together_are_refused(path):
    with pytest.raises(StudyError):
        audit([])
    with pytest.raises(StudyError):
        audit_path("nonce", 2, "probes", [NORM], path, MECHANISM, SETTINGS)
    with pytest.raises(StudyError):
        audit([path[0], {"probes": path[1]["probes"]}])
    with pytest.raises(StudyError):
        audit([{"probes": view(0)}, {"probes": view(1, replays=10)}])
