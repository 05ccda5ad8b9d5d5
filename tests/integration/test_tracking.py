import dataclasses
import json
import math
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.audits import round_audit

from coalmine.auditor import runs, tracking
from coalmine.auditor.report import record
from coalmine.auditor.tracking import SPOOL, Tracking, replay_spool, track
from coalmine.protocol.errors import StorageError, StudyError

pytestmark = [
    pytest.mark.integration,
    # MLflow 3.17 configures its mappers with an option that SQLAlchemy 2.1 deprecates.
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy:DeprecationWarning"),
]

GUARDED = """
import json, socket, sys, threading
from pathlib import Path

outside, lookup, connect = [], socket.getaddrinfo, socket.socket.connect

def guarded_lookup(host, *rest, **options):
    if host not in (None, "localhost", "127.0.0.1", "::1"):
        outside.append(str(host))
        raise OSError("the network is off")
    return lookup(host, *rest, **options)

def guarded_connect(self, address):
    if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("localhost", "127.0.0.1", "::1"):
        outside.append(str(address))
        raise OSError("the network is off")
    return connect(self, address)

socket.getaddrinfo, socket.socket.connect = guarded_lookup, guarded_connect
from coalmine.auditor.report import record
from coalmine.auditor.tracking import Tracking, track

folder = Path(sys.argv[1])
tracked = track(record.read(folder / "findings.json"), folder, Tracking("privacy team"))
for thread in threading.enumerate():  # a telemetry consumer would be one of these
    if thread is not threading.current_thread():
        thread.join(3)
print(json.dumps({"run_id": tracked.run_id, "notice": tracked.notice, "outside": outside}))
"""
"""Logs a study in a process of its own: telemetry also stays quiet where it sees a test or a CI service."""
CI_MARKS = ("CI", "PYTEST_CURRENT_TEST", "GITHUB_ACTIONS", "GITLAB_CI", "JENKINS_URL", "DO_NOT_TRACK")


@pytest.fixture(scope="module")
def audit():
    whole = round_audit()
    attack = whole.attacks[0]
    odd = dataclasses.replace(attack.strongest, mu_eff=math.inf)
    canaries = tuple(odd if canary is attack.strongest else canary for canary in attack.canaries)
    return dataclasses.replace(whole, attacks=(dataclasses.replace(attack, canaries=canaries), *whole.attacks[1:]))


@pytest.fixture(scope="module")
def study(audit, tmp_path_factory):
    """A study's folder with what may be logged and what may not."""
    folder = tmp_path_factory.mktemp("a study")
    record.write(audit, folder)
    for name in ("report.html", "figures/epsilons.svg", "figures/epsilons.png", "releases/round-1.parquet"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"content of {name}", encoding="utf-8")
    (folder / "key.bin").write_text("secret key", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def logged(study):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MLFLOW_", *CI_MARKS))}
    ended = subprocess.run(
        [sys.executable, "-c", GUARDED, str(study)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)  # nothing else may reach stdout


def reader(folder: Path):
    with tracking._client(f"sqlite:///{(folder / 'mlflow.db').resolve()}") as client:
        return client


def test_nothing_is_sent_anywhere_even_outside_ci(logged):
    assert logged["outside"] == []
    assert logged["notice"] is None


def test_everything_that_was_logged_can_be_read_back(study, logged, audit):
    client = reader(study)
    experiment = client.get_experiment_by_name("privacy team/ubuntu-irc")
    found = client.search_runs([experiment.experiment_id])
    assert {run.info.status for run in found} == {"FINISHED"}
    by_name = {run.info.run_name: run for run in found}
    told = {run.name: run for run in runs.runs(audit)}
    assert by_name.keys() == told.keys()
    for name, run in told.items():
        data = by_name[name].data
        assert data.params == run.params
        assert data.metrics == run.metrics
        assert run.tags.items() <= data.tags.items()
        parent = data.tags.get("mlflow.parentRunId")
        assert parent == (None if run.tags["kind"] == "study" else logged["run_id"])
    steps = client.get_metric_history(logged["run_id"], "eps/exact")
    assert [metric.step for metric in steps] == [1]
    assert by_name["ordinary"].data.tags["not_finite/mu_eff"] == "inf"


def test_artifacts_are_the_public_ones_and_the_table_opens_as_mlflow_s_own(study, logged, audit, tmp_path):
    client = reader(study)
    local = Path(client.download_artifacts(logged["run_id"], "", str(tmp_path)))
    names = sorted(path.relative_to(local).as_posix() for path in local.rglob("*") if path.is_file())
    pictures = ["figures/epsilons.png", "figures/epsilons.svg"]
    assert names == [*pictures, "releases/round-1.parquet", "report.html", "tables/canaries.json"]
    assert (local / "report.html").read_text(encoding="utf-8") == "content of report.html"
    frame = client._read_from_file(str(local / "tables/canaries.json"))  # how load_table opens it
    assert list(frame["attack"].unique()) == [attack.name for attack in audit.attacks]
    assert len(frame) == 40
    tag = client.get_run(logged["run_id"]).data.tags["mlflow.loggedArtifacts"]
    assert json.loads(tag) == [{"path": "tables/canaries.json", "type": "table"}]


def test_neither_keys_nor_votes_lie_in_the_store(study, logged, audit):
    vote = str(audit.attacks[0].canaries[0].probe_votes.canary[0]).encode()
    for path in (study / "mlflow.db", *(study / "mlartifacts").rglob("*")):
        if path.is_file():
            assert vote not in path.read_bytes()
            assert b"secret key" not in path.read_bytes()


def test_a_dead_server_costs_nothing_and_the_spool_is_replayed_once(
    study, logged, audit, tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        dead = Tracking("privacy team", f"http://user:password@127.0.0.1:{reserved.getsockname()[1]}/")
        tracked = track(audit, study, dead)
        assert tracked.run_id is None
        assert "wait in" in tracked.notice
        assert "password" not in tracked.notice
        assert [again.spooled for again in replay_spool(study, dead)] == [tracked.spooled]
    assert capsys.readouterr().out == ""
    spooled_at = json.loads((tracked.spooled / "record.json").read_text(encoding="utf-8"))["milliseconds"]
    client = reader(study)
    experiment = client.get_experiment_by_name("privacy team/ubuntu-irc").experiment_id
    before = len(client.search_runs([experiment]))
    record = {"coalmine.record": tracked.spooled.name, "coalmine.place": "0"}
    half = client.create_run(experiment, spooled_at, tags=record, run_name=audit.study).info.run_id

    (replayed,) = replay_spool(study, Tracking("privacy team"))

    assert replayed.run_id == half
    assert client.get_run(half).info.status == "FINISHED"
    assert len(client.search_runs([experiment])) == before + 10
    run = client.get_run(replayed.run_id)
    assert run.info.start_time == spooled_at
    assert run.data.metrics["eps/theory"] == audit.claim.eps_pld_upper
    assert {item.path for item in client.list_artifacts(replayed.run_id)} >= {"report.html", "figures", "tables"}
    assert list((study / SPOOL).iterdir()) == []
    assert replay_spool(study, Tracking("privacy team")) == ()


def test_a_damaged_spool_a_deleted_experiment_and_a_damaged_store_are_errors(study, logged, audit, tmp_path):
    client = reader(study)
    client.delete_experiment(client.create_experiment("other/ubuntu-irc"))
    with pytest.raises(StudyError, match="deleted"):
        track(audit, study, Tracking("other"))
    broken = tmp_path / SPOOL / "x" / "record.json"
    broken.parent.mkdir(parents=True)
    broken.write_text("{}", encoding="utf-8")
    with pytest.raises(StorageError, match="damaged"):
        replay_spool(tmp_path, Tracking())
    (tmp_path / "mlflow.db").write_text("no database", encoding="utf-8")
    with pytest.raises(StorageError, match="tracking store failed"):
        track(audit, tmp_path, Tracking())
    with pytest.raises(StudyError, match=r"tracking\.team"):
        Tracking("a/b")
