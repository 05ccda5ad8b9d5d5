"""`coalmine audit training` with everything that it can be asked, killed between groups of models and resumed."""

import json
import os
import signal
import sqlite3
import subprocess
import time

import pytest
from command import COALMINE, coalmine

pytestmark = [pytest.mark.integration, pytest.mark.long]

_STUDY = """
study: asked
seed: 2
training:
  clients: 3
  q: 0.2
  sigma: 1.0
  steps: 40
  lr: 0.5
  scope: federation
  data: {source: coloured-digits, train: 200, public: 200, test: 100}
  model: {hidden: [8], pretrain: 40}
  filter: {k: 1, last_epoch: 1}
  models_at_once: 10
  audit:
    canaries: [mislabeled, defence_aware]
    models: 20
    onion: true
    white_box: true
    label_only: {canaries: 20, models: 12, views: 5}
    disparate: {models: 4, minority: [0.1, 0.25]}
"""


def audited(folder, *arguments, check=True):
    return coalmine("audit", "training", "study.yaml", "--json", *arguments, cwd=folder, check=check)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    (folder / "study.yaml").write_text(_STUDY)
    return folder


@pytest.fixture(scope="module")
def killed(folder):
    """Groups that were finished when the audit was killed, and when each of them was."""
    place = folder / "runs" / "asked" / "training"
    process = subprocess.Popen(
        [*COALMINE, "audit", "training", "study.yaml"],
        cwd=folder,
        env=dict(os.environ),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    until = time.monotonic() + 600
    while len(list((place / "shadows").glob("*.npz"))) < 3 and process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    assert not (place / "membership.json").exists(), "the audit was over before it could be killed"
    return {path: path.stat().st_mtime_ns for path in (place / "shadows").glob("*.npz")}


@pytest.fixture(scope="module")
def resumed(folder, killed):
    refused = audited(folder, "--resume", "--set", "training.lr=0.4", check=False)
    assert refused.returncode == 2
    assert "lr was 0.5, is 0.4" in refused.stderr
    return json.loads(audited(folder, "--resume").stdout)


def test_a_killed_audit_goes_on_and_ends_with_the_same_numbers(folder, killed, resumed):
    assert len(killed) >= 3
    assert {path: path.stat().st_mtime_ns for path in killed} == killed  # not trained again
    assert all(path.stat().st_mode & 0o077 == 0 for path in killed)
    other = ("--set", "study=other", "--set", "execution.workers=1", "--set", "tracking.mlflow=false")
    whole = json.loads(audited(folder, *other).stdout)
    assert {k: v for k, v in whole.items() if k not in ("study", "seconds")} == {
        k: v for k, v in resumed.items() if k not in ("study", "seconds")
    }


def test_no_formal_or_exact_bound_lies_above_the_claim(resumed):
    claim = resumed["claim"]["eps_pld_upper"]
    names = [subject["name"] for subject in resumed["arms"][1]["subjects"]]
    assert names == [
        "mislabeled",
        "defence_aware",
        "mislabeled by others (onion)",
        "defence_aware by others (onion)",
        "gradient canary, every update",
    ]
    assert resumed["verdict"] == "no contradiction found"
    for arm in resumed["arms"]:
        for subject in arm["subjects"]:
            assert subject["findings"][0]["claim"]["adjacency"] == "add/remove"
            for evidence in subject["findings"][0]["evidence"]:
                assert evidence["assurance"] == "heuristic" or evidence["eps_lower"] <= claim
    exact = resumed["arms"][0]["subjects"][-1]["findings"][0]["evidence"][0]
    assert exact["assurance"] == "exact"
    assert 0.85 < exact["details"]["tightness"] <= 1
    assert exact["details"]["sigma_measured"] == pytest.approx(1.0, rel=0.15)


def test_labels_and_groups_are_told_for_every_defence_and_share(resumed):
    assert [one["defence"] for one in resumed["label_only"]] == ["none (SGD)", "HAMP", "DP-SGD", "DP-SGD with filter"]
    assert {one["assurance"] for one in resumed["label_only"]} == {"heuristic"}
    assert [one["minority"] for one in resumed["disparate"]] == [0.1, 0.25]
    minority = [one["impact"]["dropped"][1]["samples"] for one in resumed["disparate"]]
    assert minority[0] < minority[1]


def test_page_figures_and_runs_are_there(folder, resumed):
    place = folder / "runs" / "asked" / "training"
    page = (place / "report.html").read_text()
    assert "What the filter leaves" in page
    assert "were not tried" in page  # no group was asked for
    assert {"epsilons", "accuracy", "lost", "label-only", "disparate"} <= {
        path.stem for path in (place / "figures").glob("*.svg")
    }
    with sqlite3.connect(place / "mlflow.db") as database:
        keys = {row[0] for row in database.execute("SELECT key FROM metrics")}
    assert {"eps/theory", "tightness", "tpr/0.01/HAMP", "eps/lower/white_box/score"} <= keys
    assert list((place / "mlartifacts").rglob("report.html"))
