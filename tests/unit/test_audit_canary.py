"""One attack on one canary, from votes to evidence, on a small synthetic round."""

import numpy as np
import pytest
from scipy.stats import kstwo

from coalmine.auditor.audit import Settings, View, audit_canary, uniformity
from coalmine.auditor.calibration import calibrate
from coalmine.auditor.eps_bound import Split
from coalmine.auditor.exact import exact_epsilon, tpr_fpr
from coalmine.auditor.ideal import ideal_epsilon
from coalmine.auditor.moments import moments
from coalmine.auditor.score import score
from coalmine.protocol.privacy import Assurance, Mechanism

MECHANISM = Mechanism(q=0.2, sigma=0.7)
SETTINGS = Settings(alpha=0.01, split=Split.FOUR, trials=200_000, reduced_trials=20_000, seed=3, threads=1)
CANARY = np.array([0.08, 0.04, 0.02, 0.0, 0.03])


def view(canary=CANARY, seed=0, replays=0, users=60):
    rng = np.random.default_rng(seed)
    r = len(canary)

    def votes():
        return rng.random((users, r)) * (rng.random((users, r)) < 0.2) * 0.05

    nothing = np.empty((replays, r))
    return View(np.arange(10, 10 + r), canary, votes(), votes(), votes(), nothing, nothing)


def audit(views, coordinates="probes", settings=SETTINGS):
    return audit_canary("exact", 2, coordinates, 0.0995, views, MECHANISM, settings)


@pytest.fixture(scope="module")
def views():
    wider = view(np.append(CANARY, [0.01, 0.02]), seed=1)
    return {"probes": view(), "support": wider}


@pytest.fixture(scope="module")
def found(views):
    return audit(views)


def test_what_is_certified_stays_below_what_is_exact_and_that_below_the_claim(found):
    promised = ideal_epsilon(1 / MECHANISM.sigma, MECHANISM.q, MECHANISM.delta)
    certified, reduced, exact = (evidence.eps_lower for evidence in found.evidence)
    assert 0 < certified <= exact <= promised
    assert 0 < reduced <= exact
    assert exact <= ideal_epsilon(float(np.linalg.norm(CANARY)) / 0.07, MECHANISM.q, MECHANISM.delta)
    assert [step.eps for step in found.waterfall.steps][-1] == certified
    assert found.waterfall.steps[0].eps == pytest.approx(promised, rel=1e-12)


def test_evidence_says_how_it_was_found(found):
    assert [evidence.assurance for evidence in found.evidence] == [Assurance.FORMAL, Assurance.FORMAL, Assurance.EXACT]
    assert [evidence.confidence for evidence in found.evidence] == [0.99, 0.99, None]
    assert all("four" in evidence.method for evidence in found.evidence[:2])
    assert found.monte_carlo.details["trials"] == 200_000
    assert (found.attack, found.canary, found.coordinates, found.size) == ("exact", 2, "probes", 5)
    assert (found.vote_norm, found.audited_norm) == (0.0995, pytest.approx(np.linalg.norm(CANARY)))


def test_the_exact_value_is_that_of_the_score_on_true_test_users(found, views):
    for name, evidence in (("probes", found.exact), ("support", found.exact_elsewhere["support"])):
        seen = views[name]
        by = score(moments(seen.auxiliary, 60, MECHANISM), seen.canary, MECHANISM)
        direct = exact_epsilon(seen.test @ by.direction, by.signal, by.noise_std, 0.2, 1e-5)
        assert (evidence.eps_lower, evidence.error) == (direct.lower, direct.error)
    assert set(found.exact_elsewhere) == {"support"}
    assert set(audit(views, "support", Settings(0.01, Split.TWO, 5000, 500, 0, 1)).exact_elsewhere) == {"probes"}


def test_observed_rates_lie_on_the_exact_curve(found):
    curve = found.trade_off
    assert (np.diff(curve.fpr) >= 0).all()
    assert (np.diff(curve.tpr) >= 0).all()
    exact = np.interp(curve.sampled_fpr, curve.fpr, curve.tpr)
    assert np.abs(exact - curve.sampled_tpr).max() < 0.01
    assert (np.array(curve.tpr_low) <= curve.sampled_tpr).all()
    assert (np.array(curve.tpr_high) >= curve.sampled_tpr).all()
    assert (found.fpr, found.tpr) == pytest.approx(curve.chosen, abs=0.006)


def test_the_same_settings_give_the_same_audit_at_any_number_of_threads(views):
    few = Settings(0.01, Split.TWO, 20_000, 2000, 8, 1)
    one, two = (audit(views, settings=settings) for settings in (few, Settings(0.01, Split.TWO, 20_000, 2000, 8, 2)))
    assert one == two
    assert one != audit(views, settings=Settings(0.01, Split.TWO, 20_000, 2000, 9, 1))


def test_the_decision_comes_from_auxiliary_and_calibration_users_alone(found, views):
    seen = views["probes"]
    by = score(moments(seen.auxiliary, 60, MECHANISM), CANARY, MECHANISM)
    decision = calibrate(by, seen.calibration, 60, SETTINGS.trials, SETTINGS.terms(MECHANISM.delta)).value
    rates = tpr_fpr(by.project(seen.test), by.signal, by.noise_std, by.q, decision)
    assert found.trade_off.chosen == pytest.approx((rates.fpr[0], rates.tpr[0]), abs=1e-9)
    assert found.mu_eff == by.mu_eff


def test_a_canary_without_a_vote_on_the_coordinates_shows_nothing(views):
    unseen = view(np.zeros(5))
    found = audit({"probes": unseen, "support": views["support"]})
    assert [evidence.eps_lower for evidence in found.evidence] == [0.0, 0.0, 0.0]
    assert {evidence.assurance for evidence in found.evidence} == {Assurance.EXACT}
    assert (found.mu_eff, found.audited_norm, found.tpr, found.fpr) == (0.0, 0.0, 0.0, 0.0)
    assert found.exact_elsewhere["support"].eps_lower > 0.5
    seen = audit({"probes": views["probes"], "support": unseen}, settings=Settings(0.01, Split.FOUR, 5000, 500, 0, 1))
    assert seen.exact_elsewhere["support"].eps_lower == 0.0


def test_votes_on_probes_are_sorted_by_the_canary(found):
    votes = found.probe_votes
    assert votes.canary == tuple(sorted(CANARY, reverse=True))
    assert votes.noise_std == pytest.approx(0.07)
    mean = moments(view().auxiliary, 60, MECHANISM).mean
    assert votes.background_mean == pytest.approx(mean[[0, 1, 4, 2, 3]])
    assert min(votes.background_std) >= 0


@pytest.mark.parametrize("n", [20, 64, 500])
@pytest.mark.parametrize("d", [0.5, 1.0, 1.5, 2.2, -0.5, -1.5])
def test_the_p_value_of_uniformity_is_that_of_kolmogorov_and_smirnov(n, d):
    levels = np.clip((np.arange(n) + 0.5) / n - d / np.sqrt(n), 0, 1)
    reached = max(np.max(np.arange(1, n + 1) / n - levels), np.max(levels - np.arange(n) / n))
    assert uniformity(levels) == pytest.approx(kstwo.sf(reached, n), rel=0.15, abs=0.003)
