"""The reference values of one small Private Evolution audit, and of the subsampled Gaussian."""

import json

import numpy as np
import pytest

from coalmine.auditor.arrays import audit_arrays
from coalmine.auditor.case import load_case
from coalmine.auditor.exact import exact_epsilon
from coalmine.auditor.ideal import ideal_epsilon


@pytest.fixture(scope="module")
def golden_case(shared):
    return load_case(shared / "golden" / "pe_small.json")


def test_the_audit_of_arrays_reproduces_the_reference(golden_case):
    found = audit_arrays(golden_case)
    assert list(found.greedy_norm) == golden_case["greedy_norm"]
    assert list(found.greedy_mu) == golden_case["greedy_mu"]
    assert [list(row) for row in found.canary_routes] == golden_case["canary_routes"]
    for key in ("J_norm", "J_mu", "canary_h", "m0", "mu_eff"):
        np.testing.assert_allclose(getattr(found, key), golden_case[key], rtol=1e-9, err_msg=key)
    assert found.eps_exact == pytest.approx(golden_case["eps_exact_test"], rel=1e-6)
    assert found.eps_exact_error <= 1e-7


def test_a_canary_without_others_reaches_the_reference_ideal(golden_case):
    params = golden_case["params"]
    mu = golden_case["canary_v_norm"] / (params["sigma"] * params["C"])
    reference = golden_case["eps_ideal_for_v_norm"]
    for others in (np.empty(0), np.array([1e-12])):
        found = exact_epsilon(others, mu, 1.0, params["q"], params["delta"])
        assert found.lower == pytest.approx(reference, rel=1e-6)


def test_the_ideal_reproduces_the_reference(shared):
    rows = json.loads((shared / "golden" / "scalars.json").read_text())["ideal"]
    assert rows
    for row in rows:
        expected = row["eps"]
        assert ideal_epsilon(row["mu"], row["q"], row["delta"]) == pytest.approx(expected, rel=1e-6)
        found = exact_epsilon(np.array([1e-12]), row["mu"], 1.0, row["q"], row["delta"])
        assert found.lower == pytest.approx(expected, rel=1e-6)
        assert found.upper == pytest.approx(expected, rel=1e-6)
