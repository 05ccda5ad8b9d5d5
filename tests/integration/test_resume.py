"""A study that was killed ends with the same numbers as one that was not."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import time

import pytest
from command import COALMINE, coalmine, environment

pytestmark = [pytest.mark.integration, pytest.mark.long]

_STUDY = """
study: resumed
seed: 5
data: {source: personas, users: 40, records_per_user: 6, min_records: 4, auxiliary: 10, calibration: 10, test: 16}
bank: {size: 128}
privacy: {max_records: 6, q: 0.2}
rounds: {count: 3, output: 50}
audit:
  attacks: [ordinary, nonce-mu]
  canaries: 1
  canary_records: 6
  probes: 6
  pool: 12
  trials: 5000
  reduced_trials: 2000
  replays: 4
"""
_MOMENTS = int(os.environ.get("COALMINE_KILL_MOMENTS", "2"))
"""How many random moments are tried; the longer run takes ten."""


def _run(folder, *arguments, check=True):
    cache = folder.parent / "cache"
    return coalmine("run", "study.yaml", "--json", *arguments, cwd=folder, cache=cache, check=check)


def _numbers(folder):
    """Everything that was found, without how long it took."""
    results = folder / "runs" / "resumed"
    findings = json.loads((results / "findings.json").read_text())
    del findings["seconds"]
    return findings, json.loads((results / "rounds.json").read_text())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Run without a break; its embeddings serve the others, so that a kill meets rounds and audits, not embedding."""
    folder = tmp_path_factory.mktemp("resume") / "whole"
    folder.mkdir()
    (folder / "study.yaml").write_text(_STUDY)
    _run(folder)
    started = time.monotonic()
    _run(folder)
    return folder, time.monotonic() - started


def _killed(folder, seconds):
    """Start in a process group of its own, kill all of it with signal 9 after a while; True if it was still running."""
    process = subprocess.Popen(
        [*COALMINE, "run", "study.yaml", "--json"],
        cwd=folder,
        env=environment(folder.parent / "cache"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(seconds)
        return False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
        return True


@pytest.mark.parametrize("moment", range(_MOMENTS))
def test_killed_at_a_random_moment(whole, moment, tmp_path):
    reference, seconds = whole
    folder = reference.parent / f"killed {moment}"
    folder.mkdir()
    (folder / "study.yaml").write_text(_STUDY)
    share = random.Random(moment).uniform(0.15, 0.9)
    _killed(folder, share * seconds)
    began = (folder / "runs" / "resumed" / "journal" / "manifest.json").exists()
    _run(folder, *(["--resume"] if began else []))
    assert _numbers(folder) == _numbers(reference)
    with sqlite3.connect(folder / "runs" / "resumed" / "mlflow.db") as database:
        studies = database.execute("SELECT COUNT(*) FROM tags WHERE key = 'kind' AND value = 'study'").fetchone()[0]
    assert studies == 1


def test_resuming_a_finished_study_changes_nothing_and_uses_its_mlflow_run(whole):
    folder, _ = whole
    before = _numbers(folder)
    with sqlite3.connect(folder / "runs" / "resumed" / "mlflow.db") as database:
        runs = database.execute("SELECT COUNT(*) FROM runs").fetchone()[0]
    _run(folder, "--resume")
    assert _numbers(folder) == before
    with sqlite3.connect(folder / "runs" / "resumed" / "mlflow.db") as database:
        assert database.execute("SELECT COUNT(*) FROM runs").fetchone()[0] == runs


def test_what_is_on_disk_tells_no_cohort_and_no_noise_free_sum(whole):
    """Releases are the noisy ones; nothing else that is kept holds an array over the bank."""
    import pyarrow.parquet as pq

    results = whole[0] / "runs" / "resumed"
    files = {path.relative_to(results).as_posix() for path in results.rglob("*.parquet")}
    kept = {name for name in files if not name.startswith("mlartifacts")}
    assert kept == {
        "bank.parquet",
        *(f"banks/round-{number}.parquet" for number in (2, 3)),
        *(f"releases/round-{number}.parquet" for number in (1, 2, 3)),
    }
    for number in (1, 2, 3):
        table = pq.read_table(results / "releases" / f"round-{number}.parquet")
        assert table.column_names == ["histogram"]
        counts = table.column("histogram").to_numpy()  # a noise-free sum has few values; noise has as many as bins
        assert len(set(counts)) == len(counts)


def test_a_changed_study_is_refused_with_the_difference(whole):
    done = _run(whole[0], "--resume", "--set", "privacy.sigma=2.0", check=False)
    assert done.returncode == 2
    assert "privacy.sigma was 1.0, is 2.0" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_budget_no_round(whole, tmp_path):
    (tmp_path / "study.yaml").write_text(_STUDY)
    done = _run(tmp_path, "--set", "privacy.max_eps=2.5", check=False)
    assert done.returncode == 2
    assert "privacy.max_eps" in done.stderr
    assert "is not started" in done.stderr
    assert not (tmp_path / "runs" / "resumed").exists()
