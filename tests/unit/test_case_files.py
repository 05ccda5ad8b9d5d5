"""Bring your own votes: both file forms, and what is refused."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from oracles import naive_greedy

from coalmine.auditor.arrays import audit_arrays
from coalmine.auditor.case import check_case, load_case
from coalmine.auditor.design import squared_distances as distances
from coalmine.auditor.ideal import ideal_epsilon
from coalmine.protocol.errors import BankError, DataError, InputError, StudyError

PARAMS = {"k": 2, "r": 3, "C": 0.1, "q": 0.2, "sigma": 1.0, "delta": 1e-5, "m": 4}


def unit(rng, *shape):
    x = rng.normal(size=shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@pytest.fixture
def case():
    rng = np.random.default_rng(5)
    sizes = rng.integers(0, 5, 30)
    return {
        "params": dict(PARAMS),
        "bank": unit(rng, 20, 4).tolist(),
        "pool": unit(rng, 7, 4).tolist(),
        "canary": unit(rng, 4, 4).tolist(),
        "aux": [unit(rng, n, 4).tolist() for n in sizes[:10]],
        "test": [unit(rng, n, 4).tolist() for n in sizes[10:]],
        "probe_positions": [2, 9, 11],
    }


def packed(case):
    arrays = {key: np.array(case[key]) for key in ("bank", "pool", "canary", "probe_positions")}
    for key in ("aux", "test"):
        arrays[key] = np.concatenate([np.reshape(user, (-1, 4)) for user in case[key]])
        arrays[f"{key}_offsets"] = np.cumsum([0, *map(len, case[key])])
    return arrays | {"params": np.array(json.dumps(case["params"]))}


def test_json_npz_and_arrays_give_the_same_audit(case, tmp_path):
    (tmp_path / "case.json").write_text(json.dumps(case))
    np.savez(tmp_path / "case.npz", **packed(case))
    results = [audit_arrays(load_case(tmp_path / name)) for name in ("case.json", "case.npz")]
    assert results[0] == results[1] == audit_arrays(case)
    json.dumps(asdict(results[0]))


def test_selection_equals_the_plain_form(case):
    found = audit_arrays(case)
    retained, pool, canary = (
        np.delete(case["bank"], case["probe_positions"], axis=0),
        *map(np.array, (case["pool"], case["canary"])),
    )
    picks, values = naive_greedy.select(retained, pool, canary, 2, 3, naive_greedy.norm_objective)
    assert list(found.greedy_norm) == picks
    assert found.J_norm == pytest.approx(values[-1], rel=1e-12)


def test_distances_are_those_of_the_vectors(case):
    records, candidates = np.array(case["canary"]), np.array(case["bank"])
    expected = ((records[:, None] - candidates) ** 2).sum(axis=2)
    np.testing.assert_allclose(distances(records, candidates), expected, rtol=1e-12)


def test_users_without_records_and_no_test_user_are_allowed(case):
    case["test"] = [[], []]
    assert 0 < audit_arrays(case).eps_exact < ideal_epsilon(1.0, 0.2, 1e-5)
    case["test"] = []
    alone = audit_arrays(case)
    assert alone.eps_exact == pytest.approx(ideal_epsilon(alone.mu_eff, 0.2, 1e-5), abs=1e-9)
    assert alone.m0 == (0.0, 0.0, 0.0)


def spoil(case, key, value):
    *path, last = key.split(".")
    target = case
    for part in path:
        target = target[part]
    target[last] = value


@pytest.mark.parametrize(
    ("key", "value", "error", "message"),
    [
        ("params.q", 0, StudyError, r"privacy\.q"),
        ("params.q", 1.5, StudyError, r"privacy\.q"),
        ("params.q", True, StudyError, r"params\.q"),
        ("params.sigma", -1, StudyError, "sigma"),
        ("params.delta", 1, StudyError, "delta"),
        ("params.sigma", 1e308, StudyError, "sigma: 1e"),
        ("params.C", 1e308, StudyError, "clip: 1e"),
        ("params.delta", "x", StudyError, "not a number"),
        ("params.k", 2.5, StudyError, "whole number"),
        ("params.k", 18, BankError, "17 candidates stay"),
        ("params.r", 4, StudyError, r"params\.r: says 4, but the arrays say 3"),
        ("params.N", 21, StudyError, r"params\.N"),
        ("params.m", 1, DataError, "records"),
        ("params", [1], StudyError, "names and numbers"),
        ("params", "{", StudyError, "JSON"),
        ("bank", [[1.0, 0.0], [1.0]], DataError, "bank: rows differ"),
        ("bank", [["1", "0"]], DataError, "bank: holds"),
        ("bank", [], DataError, "bank"),
        ("pool", [[1.0, 0.0]], DataError, "pool: has shape"),
        ("pool", [[1.0, 0.0, 0.0, 0.0]] * 2, BankError, r"2 items, but 3 probes"),
        ("canary", [[1.0, 1.0, 0.0, 0.0]], DataError, "canary: .*length 1"),
        ("canary", [[float("nan"), 1.0, 0.0, 0.0]], DataError, "canary: .*not finite"),
        ("canary", [], DataError, "canary"),
        ("aux", [], DataError, "auxiliary"),
        ("aux", 3, DataError, "list of users"),
        ("test", [[[1.0, 0.0, 0.0, 0.0]], [[2.0, 0.0, 0.0, 0.0]]], DataError, r"test\[1\]"),
        ("test", np.eye(4), DataError, "test_offsets"),
        ("test_offsets", [0, 5], DataError, "test_offsets|test"),
        ("probe_positions", [3, 3, 4], BankError, "ascending"),
        ("probe_positions", [0, 1, 20], BankError, "0 to 19"),
        ("probe_positions", [0.5, 1.0, 2.0], DataError, "probe_positions"),
        ("probe_positions", [], BankError, "at least one"),
    ],
)
def test_unusable_entries_are_named(case, key, value, error, message):
    spoil(case, key, value)
    with pytest.raises(error, match=message):
        check_case(case)


@pytest.mark.parametrize("key", ["bank", "pool", "canary", "aux", "test", "probe_positions", "params"])
def test_a_missing_entry_is_named_with_its_nearest_spelling(case, key):
    case[key + "x"] = case.pop(key)
    with pytest.raises(DataError, match=f"{key} is missing.*{key}x"):
        check_case(case)


@pytest.mark.parametrize("key", PARAMS)
def test_a_missing_parameter_is_named(case, key):
    del case["params"][key]
    if key == "r":  # the probe positions say it
        check_case(case)
    else:
        with pytest.raises(StudyError, match=rf"params\.{key} is missing"):
            check_case(case)


def test_offsets_must_fit(case, tmp_path):
    arrays = packed(case)
    for offsets in ([0, 3], [1, len(arrays["aux"])], [0, 5, 2, len(arrays["aux"])]):
        with pytest.raises(DataError, match="aux_offsets"):
            check_case(arrays | {"aux_offsets": np.array(offsets)})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("case.txt", b"{}", "neither"),
        ("case.json", b"{", "valid json"),
        ("case.json", b"\xff\xfe{}", "valid json"),
        ("case.json", b"[1]", "no JSON object"),
        ("case.npz", b"not a zip", "valid npz"),
        ("missing.json", None, "cannot be read"),
        ("missing.npz", None, "cannot be read"),
    ],
)
def test_unreadable_files_are_refused(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_case(tmp_path / name)


def test_pickled_arrays_are_refused(tmp_path):
    np.savez(tmp_path / "case.npz", aux=np.array([[1], None], dtype=object))
    with pytest.raises(InputError, match="valid npz"):
        load_case(tmp_path / "case.npz")
