"""`coalmine train` and `coalmine audit training` in processes of their own: Flower, Ray, MLflow, kill and resume."""

import json
import os
import signal
import sqlite3
import subprocess
import time

import numpy as np
import pytest
from command import COALMINE, coalmine

pytest.importorskip("flwr", reason="needs coalmine[federated]")
pytestmark = pytest.mark.integration

_STUDY = """
study: small
seed: 2
training:
  clients: 3
  q: 0.2
  sigma: 1.0
  steps: 60
  lr: 0.5
  data: {train: 200, public: 200, test: 100}
  model: {hidden: [8], pretrain: 40}
  filter: {k: 1, last_epoch: 1}
  checkpoint_every: 5
  audit:
    canaries: [mislabeled, clipbkd]
    models: 20
    one_run: {canaries: 30, guesses: [5, 5]}
    group: 12
"""
_SUBJECTS = ["mislabeled", "clipbkd", "30 sparse, one run", "group of 12 in gradient space"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("training")
    (folder / "study.yaml").write_text(_STUDY)
    return folder


@pytest.fixture(scope="module")
def trained(folder):
    return json.loads(coalmine("train", "study.yaml", "--json", cwd=folder).stdout)


def test_training_tells_claim_and_accuracy(folder, trained):
    assert trained["claim"]["eps_pld_lower"] <= trained["claim"]["eps_pld_upper"] <= trained["claim"]["eps_prv"]
    assert (trained["claim"]["rounds"], trained["claim"]["unit"]) == (60, "record")
    assert trained["accuracy"] > 0.6
    place = folder / "runs" / "small" / "training"
    assert json.loads((place / "findings.json").read_text()) == trained
    assert "no secure aggregation" in trained["trust"]
    assert not list(place.glob("*.part"))
    assert (place / "checkpoint.npz").stat().st_mode & 0o077 == 0
    with sqlite3.connect(place / "mlflow.db") as database:
        assert {"eps/theory", "utility/accuracy"} <= {row[0] for row in database.execute("SELECT key FROM metrics")}


@pytest.mark.long
def test_a_killed_run_goes_on_to_the_same_model(folder, trained):
    place, arguments = (
        folder / "runs" / "other" / "training",
        ("--set", "study=other", "--set", "tracking.mlflow=false"),
    )
    many = ("--set", "training.clients=100", "--set", "training.partition.kind=iid", "--set", "training.filter=null")
    process = subprocess.Popen([*COALMINE, "train", "study.yaml", *arguments, *many], cwd=folder, env=dict(os.environ))
    until = time.monotonic() + 120
    while not (place / "checkpoint.npz").exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)
    with np.load(place / "checkpoint.npz") as file:
        assert 0 < int(file["step"]) < 60, "the run was over before it could be killed"
    refused = coalmine(
        "train", "study.yaml", "--resume", *arguments, *many, "--set", "training.lr=0.4", cwd=folder, check=False
    )
    assert refused.returncode == 2
    assert "lr was 0.5, is 0.4" in refused.stderr
    coalmine("train", "study.yaml", "--resume", *arguments, *many, cwd=folder)
    one = ("--set", "study=one", "--set", "tracking.mlflow=false", "--set", "training.clients=1")
    coalmine("train", "study.yaml", *one, *many[2:], cwd=folder)
    models = [np.load(folder / "runs" / name / "training" / "model.npz")["theta"] for name in ("other", "one")]
    assert np.array_equal(*models)


@pytest.mark.long
def test_an_audit_has_the_same_numbers_for_any_number_of_workers(folder):
    found = []
    for workers in (1, 2):
        more = (
            "--set",
            f"execution.workers={workers}",
            "--set",
            "training.models_at_once=8",
            "--set",
            "training.scope=federation",
        )
        done = coalmine(
            "audit", "training", "study.yaml", "--json", *more, "--set", "tracking.mlflow=false", cwd=folder
        )
        found.append({key: value for key, value in json.loads(done.stdout).items() if key != "seconds"})
    assert found[0] == found[1]
    claim = found[0]["claim"]["eps_pld_upper"]
    assert [arm["name"] for arm in found[0]["arms"]] == ["without filter", "with filter"]
    for arm in found[0]["arms"]:
        assert [subject["name"] for subject in arm["subjects"]] == _SUBJECTS
        for subject in arm["subjects"]:
            for evidence in subject["findings"][0]["evidence"]:
                assert evidence["assurance"] in ("formal", "heuristic")
                one = "group" not in subject["name"]  # the claim is about one sample, a group's bound is about twelve
                assert evidence["assurance"] == "heuristic" or not one or evidence["eps_lower"] <= claim
    for arm in found[0]["arms"]:
        group = arm["subjects"][-1]["findings"][0]["evidence"]
        assert next(one for one in group if one["method"].startswith("gdp ("))["eps_lower"] > 1
    assert found[0]["arms"][0]["lost"] == 0 < found[0]["arms"][1]["lost"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("train", "--set", "training=null"), "no section training"),
        (("train", "--set", "training.filter.k=9"), "can drop 540 of 200"),
        (("train", "--resume", "--set", "study=never"), "nothing to resume"),
        (("audit", "training", "--set", "training.mode=local"), "gradient mode"),
    ],
)
def test_a_mistake_is_one_message_and_code_2(folder, arguments, said):
    verb = arguments[: 2 if arguments[0] == "audit" else 1]
    done = coalmine(*verb, "study.yaml", *arguments[len(verb) :], cwd=folder, check=False)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
