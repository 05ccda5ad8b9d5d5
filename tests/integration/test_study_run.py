"""Whole studies through the command line: real Ray, real MiniLM, real MLflow, in processes of their own."""

import json
import os
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest
from command import COALMINE, coalmine

pytestmark = pytest.mark.integration

_STUDY = """
study: small
seed: 3
data: {source: personas, users: 64, records_per_user: 8, min_records: 4, auxiliary: 15, calibration: 15, test: 30}
bank: {size: 256}
privacy: {max_records: 8, q: 0.2}
audit: {canaries: 2, canary_records: 8, probes: 8, pool: 24, trials: 20000, reduced_trials: 5000, replays: 16}
"""


def _comparable(findings):
    return {key: value for key, value in findings.items() if key != "seconds"}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    (folder / "study.yaml").write_text(_STUDY)
    return folder


@pytest.fixture(scope="module")
def first(study):
    """One worker, empty cache."""
    one = "--set", "execution.workers=1"
    return coalmine("run", "study.yaml", "--json", *one, cwd=study, cache=study / "cache 1")


def test_findings_are_json_on_stdout_and_never_above_the_claim(first):
    findings = json.loads(first.stdout)
    claim = findings["claim"]["eps_pld_upper"]
    assert len(findings["attacks"]) == 8
    for attack in findings["attacks"]:
        for canary in attack["canaries"]:
            assert 0 <= canary["exact"]["eps_lower"] <= claim
            assert canary["monte_carlo"]["eps_lower"] <= claim
            assert canary["variance_reduced"]["eps_lower"] <= claim
    nonce = next(attack for attack in findings["attacks"] if attack["finding"]["subject"] == "nonce-mu")
    assert max(canary["exact"]["eps_lower"] for canary in nonce["canaries"]) > 0.9 * claim
    assert findings["replay_p_value"] > 1e-6
    assert "Traceback" not in first.stderr


@pytest.mark.parametrize("workers", [2, pytest.param(4, marks=pytest.mark.long)])
def test_same_numbers_for_any_number_of_workers_each_from_an_empty_cache(study, first, workers):
    done = coalmine(
        "run",
        "study.yaml",
        "--json",
        *("--set", f"execution.workers={workers}", "--set", f"output=runs/{workers}", "--set", "tracking.mlflow=false"),
        cwd=study,
        cache=study / f"cache {workers}",
    )
    assert _comparable(json.loads(done.stdout)) == _comparable(json.loads(first.stdout))


def test_what_a_study_leaves_behind(study, first):
    folder = study / "runs" / "small"
    left = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {"report.html", "findings.json", "bank.parquet", "releases/round-1.parquet", "mlflow.db"} <= left
    assert {f"figures/{name}.svg" for name in ("epsilons", "waterfall", "trade-off", "probe-votes")} <= left
    assert not [name for name in left if name.endswith(".part") or "spill" in name]
    assert json.loads((folder / "findings.json").read_text()) == json.loads(first.stdout)
    page = (folder / "report.html").read_text()
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "src=" not in page


def test_no_private_text_and_no_seed_in_what_is_shared(study, first):
    from coalmine.clients.data.personas import PersonasSource, write_personas

    table = write_personas(PersonasSource(users=64, records_per_user=8, seed=3))
    folder = study / "runs" / "small"
    shared = (
        b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".parquet")
        + first.stderr.encode()
    )
    for user in table.users:
        assert not any(record.encode() in shared for record in user.records)
    assert b'"seed"' not in shared


def test_mlflow_holds_the_runs(study, first):
    with sqlite3.connect(study / "runs" / "small" / "mlflow.db") as database:
        names = {row[0] for row in database.execute("SELECT DISTINCT key FROM metrics")}
        runs = database.execute("SELECT COUNT(*) FROM runs").fetchone()[0]
    assert {"eps/theory", "eps/exact", "tightness", "cohort/expected"} <= names
    assert runs >= 9


def test_protected_randomness_is_marked_and_keeps_its_key_to_itself(study, first):
    done = coalmine(
        *("run", "study.yaml", "--json", "--set", "randomness={kind: protected, key_file: secrets/key}"),
        *("--set", "output=runs/protected", "--set", "audit.attacks=[nonce]", "--set", "audit.canaries=1"),
        *("--set", "tracking.mlflow=false"),
        cwd=study,
        cache=study / "cache 1",
    )
    findings = json.loads(done.stdout)
    assert findings["randomness"] == "protected"
    key = study / "secrets" / "key"
    assert key.stat().st_mode & 0o077 == 0
    for path in (study / "runs" / "protected").rglob("*"):
        assert not path.is_file() or key.read_bytes() not in path.read_bytes()


def test_interruption_leaves_nothing_half_written(study, tmp_path):
    process = subprocess.Popen(
        [*COALMINE, "run", str(study / "study.yaml"), "--set", "data.users=400", "--set", "data.test=300"],
        cwd=tmp_path,
        env={**os.environ, "COALMINE_CACHE": str(tmp_path / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A test runner in the background may ignore the signal, and a child would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    shelf = tmp_path / "cache" / "embeddings"
    deadline = time.monotonic() + 300
    while not list(shelf.glob("*")) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert "interrupted" in said
    assert not list(Path(tmp_path).rglob("*.part"))
    for file in shelf.glob("*.sqlite"):
        with sqlite3.connect(file) as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
