"""Values computed by references that share no code with the project (`shared/golden/scalars.json`)."""

import json
import math

import pytest

from coalmine.auditor import clopper_pearson, gdp, one_run
from coalmine.auditor.disclosure import feature_match, user_match
from coalmine.auditor.disclosure.assignment import Assignment, AssignmentKind
from coalmine.auditor.disclosure.feature_match import hoeffding_test, log_p_value
from coalmine.auditor.disclosure.weighted_sum import weights
from coalmine.auditor.eps_bound import Split, eps_lower
from coalmine.protocol.accounting import prv_epsilon


@pytest.fixture(scope="module")
def golden(shared):
    return json.loads((shared / "golden" / "scalars.json").read_text())


def near(value):
    return pytest.approx(value, rel=1e-9, abs=1e-300)


def test_clopper_pearson(golden):
    for case in golden["clopper_pearson"]:
        x, n, gamma = case["x"], case["n"], case["gamma"]
        assert float(clopper_pearson.lower(x, n, gamma)) == near(case["lo"])
        assert float(clopper_pearson.upper(x, n, gamma)) == near(case["hi"])


def test_eps_lower(golden):
    for case in golden["eps_lower"]:
        n = case["n"]
        bound = eps_lower(case["tp"], case["fp"], n, n, case["delta"], case["alpha"], Split.FOUR)
        assert bound.eps_lower == near(case["eps_lower"])


def test_one_run(golden):
    for case in golden["one_run"]:
        seen = one_run.Guesses(canaries=case["m"], guesses=case["r"], correct=case["v"])
        assert one_run.steinke_p_value(seen, 1.0, case["delta"]) == near(case["p_at_eps1"])
        assert one_run.steinke_eps_lower(seen, case["delta"], case["level"]) == near(case["eps"])
        assert one_run.gdp_mu_lower(seen, case["level"]) == near(case["fdp_mu"])
        assert one_run.gdp_eps_lower(seen, case["delta"], case["level"]) == near(case["fdp_eps"])


def test_gdp(golden):
    for case in golden["gdp"]:
        assert gdp.eps(case["mu"], case["delta"]) == near(case["eps"])


def test_accounting_to_three_decimals(golden):
    for case in golden["accounting"]:
        eps = prv_epsilon(case["q"], case["sigma"], case["steps"], case["delta"])
        assert round(eps, 3) == case["eps_theory"]


def test_feature_match(golden):
    for case in golden["feature_match"]:
        coins = Assignment(AssignmentKind.BERNOULLI, case["p"], len(case["d"]), 0)
        d = weights(case["d"])
        printed = hoeffding_test(d, case["T"], case["p"], case["alpha"])
        for key in ("p_hat", "p_value", "critical", "eps_one_sided", "eps_printed"):
            assert getattr(printed, key) == near(case[key])
        assert math.exp(log_p_value(d, case["T"], coins, 0.0)) == near(case["exact_p_value"])
        assert feature_match.eps_lower(d, case["T"], coins, case["alpha"]) == near(case["exact_eps"])


def test_user_match(golden):
    for case in golden["user_match"]:
        coins = Assignment(AssignmentKind.BERNOULLI, case["p"], case["r"], 0)
        assert user_match.eps_lower(case["r"], case["w"], coins, case["alpha"]) == near(case["eps"])
