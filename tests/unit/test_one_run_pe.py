"""Scores, guesses and plans of the one-run audit; its levels are tested in tests/statistical."""

import json
import sys

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from coalmine.auditor import one_run_audit
from coalmine.auditor.moments import moments
from coalmine.auditor.nonce import nonce_family
from coalmine.auditor.one_run import Guesses, rejects_curve, steinke_eps_lower, steinke_p_value
from coalmine.auditor.one_run_audit import audit
from coalmine.auditor.one_run_pe import canary_scores, guess, linear_scores
from coalmine.auditor.one_run_plan import model_scores, plan
from coalmine.deploy import cli, study_file
from coalmine.protocol.accounting import claim
from coalmine.protocol.errors import BankError, DataError, StudyError
from coalmine.protocol.finding import Verdict
from coalmine.protocol.privacy import Mechanism

MECHANISM = Mechanism(q=0.3, sigma=1.0, clip=0.1)


def test_a_score_is_the_log_likelihood_ratio_of_the_model():
    rng = np.random.default_rng(0)
    canaries, auxiliary = 0.05 * rng.random((4, 6)), 0.02 * rng.random((9, 6))
    releases = rng.normal(size=(3, 6)) * 0.2
    found = canary_scores(releases, canaries, auxiliary, 40, MECHANISM)
    users, rate = moments(auxiliary, 40, MECHANISM), MECHANISM.q / 2
    for j, vote in enumerate(canaries):
        others = np.delete(canaries, j, axis=0)
        mean = users.mean + rate * others.sum(axis=0)
        covariance = users.covariance + rate * (1 - rate) * others.T @ others
        without = multivariate_normal(mean, covariance).pdf(releases)
        with_vote = multivariate_normal(mean + vote, covariance).pdf(releases)
        mixed = (1 - MECHANISM.q) * without + MECHANISM.q * with_vote
        assert found[j] == pytest.approx(np.log(mixed / without).sum(), rel=1e-8)


def test_a_canary_without_a_vote_says_nothing():
    canaries = np.array([[0.1, 0.0], [0.0, 0.0]])
    scores = canary_scores(np.array([[5.0, 5.0]]), canaries, np.zeros((1, 2)), 3, MECHANISM)
    assert scores[1] == 0
    assert scores[0] > 1


def test_linear_scores_are_standardised_before_the_mixture():
    """One canary alone: (Y - q/2 v) along v, in units of the noise; the mixture over participation is left out."""
    votes, release = np.array([[0.1, 0.0], [0.0, 0.0]]), np.array([[0.25, 9.0], [0.05, 9.0]])
    found = linear_scores(release, votes, np.zeros((1, 2)), 3, MECHANISM)
    assert found[0] == pytest.approx((0.25 + 0.05) / (0.1 * np.sqrt(2)))
    assert np.isnan(found[1]), "a canary without a vote has no such score"


def test_linear_scores_of_excluded_canaries_have_unit_spread():
    rng = np.random.default_rng(7)
    votes = 0.05 * (np.eye(80) + 0.5 * np.roll(np.eye(80), 1, axis=1))
    scores = []
    for _ in range(60):
        here = (rng.random((3, 80)) < MECHANISM.q) & (rng.random(80) < 0.5)
        here[:, ::2] = False
        sums = here @ votes + MECHANISM.noise_std * rng.standard_normal((3, 80))
        scores.append(linear_scores(sums, votes, np.zeros((1, 80)), 3, MECHANISM)[::2])
    assert np.mean(scores) == pytest.approx(0, abs=0.1)
    assert np.std(scores) == pytest.approx(1, abs=0.05)


def test_when_everybody_takes_part_the_score_is_linear():
    everybody = Mechanism(q=1.0)
    scores = canary_scores(np.array([[0.3], [0.1]]), np.array([[0.1]]), np.zeros((1, 1)), 0, everybody)
    assert scores[0] == pytest.approx((0.3 + 0.1 - 2 * 0.05) * 0.1 / 0.01)


def test_guesses_are_the_extremes():
    scores = np.array([0.5, 3.0, -1.0, 3.0, 0.0, -2.0])
    included = np.array([True, True, False, False, True, True])
    assert guess(scores, included, 1, 0).correct == 1, "ties go to the lower index"
    assert guess(scores, included, 2, 0).correct == 1
    assert guess(scores, included, 2, 2) == Guesses(6, 4, 2)
    assert guess(scores, included, 0, 2) == Guesses(6, 2, 1)
    for bad in ((0, 0), (4, 3), (-1, 2)):
        with pytest.raises(StudyError, match="guesses"):
            guess(scores, included, *bad)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match="releases have shape"):
        canary_scores(np.zeros((1, 3)), np.zeros((2, 4)), np.zeros((1, 4)), 1, MECHANISM)


def test_an_audit_holds_its_statements_apart():
    promised = claim(Mechanism(q=0.5, sigma=2.0), 1)
    seen = Guesses(400, 60, 58)
    rng = np.random.default_rng(0)
    inside, outside = rng.standard_normal(190) + 1, rng.standard_normal(210)
    found = audit(seen, 60, 0, promised, 0.05, inside, outside)
    assert found.steinke.eps_lower == steinke_eps_lower(seen, promised.delta, 0.05)
    assert found.claim_p_value == steinke_p_value(seen, promised.eps_pld_upper, promised.delta) < 0.05
    assert found.curve_rejected
    assert 0.5 < found.sigma_rejected < 2.0
    assert found.family.eps_lower > promised.eps_pld_upper
    assert found.verdict is Verdict.CONTRADICTED
    assert {one.method: one.assurance.value for one in found.evidence} == {
        "one-run/steinke": "formal",
        "one-run/claim-family": "heuristic",
        "one-run/gdp": "heuristic",
        "one-run/gaussian": "heuristic",
    }
    assert found.inside == tuple(sorted(inside))


def test_chance_guesses_reject_nothing():
    same = np.linspace(-2, 2, 200)
    found = audit(Guesses(400, 60, 30), 60, 0, claim(Mechanism(q=0.5, sigma=2.0), 1), 0.05, same, same)
    assert found.steinke.eps_lower == 0
    assert not found.curve_rejected
    assert found.sigma_rejected is None
    assert found.verdict is Verdict.CONSISTENT
    assert [one.eps_lower for one in found.evidence] == [0, 0, 0, 0]


def test_the_rejected_noise_is_where_the_curve_turns():
    seen = Guesses(400, 60, 56)
    sigma = one_run_audit.smallest_rejected_sigma(seen, 0.5, 1.0, 1, 0.05)
    for factor, expected in ((1.0, True), (1 / 1.02, False)):
        curve = one_run_audit.claim_curve(0.5, sigma * factor, 1)
        assert rejects_curve(seen, curve, 0.05) is expected


def test_a_plan_reaches_its_target_as_often_as_it_says():
    mechanism = Mechanism(q=0.5, sigma=0.7)
    made = plan(mechanism, 1, 0.5, 0.05, np.random.default_rng(0), power=0.8)
    assert made.reached
    assert made.probes == 5 * made.canaries
    rng, reached = np.random.default_rng(1), 0
    for _ in range(400):
        included = rng.random(made.canaries) < 0.5
        seen = guess(model_scores(mechanism, 1, 5, included, rng), included, made.say_in, made.say_out)
        reached += steinke_p_value(seen, 0.5, mechanism.delta) < 0.05
    assert 0.7 < reached / 400 < 0.95


def test_plans_ask_for_more_where_less_can_be_seen():
    def needed(**more):
        knobs = {"q": 0.5, "sigma": 0.7} | {key: more.pop(key) for key in ("q", "sigma") if key in more}
        return plan(Mechanism(**knobs), more.pop("rounds", 1), 0.5, 0.05, np.random.default_rng(0), **more).canaries

    usual = needed()
    assert needed(sigma=1.0) > usual
    assert needed(q=0.3) > usual
    assert needed(probes_each=2) > usual
    assert needed(rounds=3) < usual
    out_of_reach = plan(Mechanism(), 1, 5.0, 0.05, np.random.default_rng(0), limit=500)
    assert not out_of_reach.reached
    assert out_of_reach.eps < 1.69
    with pytest.raises(StudyError, match="target"):
        plan(MECHANISM, 1, 0.0, 0.05, np.random.default_rng(0))


def test_a_family_shares_all_but_its_end():
    family = nonce_family(3, 7, 40)
    assert len(set(family)) == 40
    assert len({text[:-6] for text in family}) == 1
    assert family == nonce_family(3, 7, 40)
    assert family[0][:-6] != nonce_family(3, 8, 1)[0][:-6]
    with pytest.raises(BankError, match="1000000"):
        nonce_family(0, 0, 10**6 + 1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"canaries": 400}, "cannot hold 400 x 5 probes"),
        ({"canaries": 5, "guesses": [4, 4]}, "8 guesses on 5 canaries"),
        ({"canaries": 5, "guesses": [0, 0]}, "0 guesses"),
        ({"canaries": 5, "guesses": [2, 0], "records": 65}, "max_records"),
    ],
)
def test_a_section_that_cannot_be_run_is_refused(values, message):
    with pytest.raises(StudyError, match=message):
        study_file.build_study({"bank": {"size": 500}, "audit": {"one_run": values}})


def test_the_calculator_answers(monkeypatch, capsys):
    words = "coalmine calc one-run-plan --target 0.4 --q 1 --sigma 1 --json"
    monkeypatch.setattr(sys, "argv", words.split())
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    told = json.loads(capsys.readouterr().out)
    assert told["reached"] is True
    assert told["probes"] == 5 * told["canaries"] < 2000


def test_a_study_without_the_section_says_so(monkeypatch, capsys, tmp_path):
    file = tmp_path / "study.yaml"
    file.write_text("study: plain\n")
    monkeypatch.setattr(sys, "argv", ["coalmine", "audit", "one-run", str(file)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert "audit.one_run" in capsys.readouterr().err
