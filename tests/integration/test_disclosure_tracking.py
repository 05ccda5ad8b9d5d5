"""A disclosure audit of files reaches MLflow with all its findings, and no private text does."""

import json
from pathlib import Path

import pytest
from command import coalmine
from pydantic import TypeAdapter

from coalmine.auditor import tracking
from coalmine.auditor.disclosure.result import DisclosureAudit
from coalmine.auditor.disclosure.runs import runs

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy:DeprecationWarning"),
]

SECRET = "quinquagesima marmalade turbine of ostrobothnia sings under seven green lanterns every other leap year"


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    folder = tmp_path_factory.mktemp("disclosures")

    def table(name, side, users):
        lines = ["user,text", *(f"{side}{user},{SECRET} {side} {user}" for user in range(users))]
        path = folder / f"{name}.csv"
        path.write_text("\n".join(lines) + "\n")
        return str(path)

    train, holdout = table("train", "inside", 40), table("holdout", "outside", 40)
    files = ("--train", train, "--holdout", holdout, "--synthetic", train)
    how = ("--classes", "regurgitation", "--assignment", "bernoulli", "--out", str(folder / "out"), "--team", "privacy")
    coalmine("audit", "disclosures", *files, *how, cwd=folder)
    return folder / "out"


def test_every_finding_can_be_read_back(audited):
    findings = json.loads((audited / "findings.json").read_text())
    audit = TypeAdapter(DisclosureAudit).validate_python(
        {key: value for key, value in findings.items() if key not in ("format", "verdict")}
    )
    with tracking._client(f"sqlite:///{(audited / 'mlflow.db').resolve()}") as client:
        experiment = client.get_experiment_by_name("privacy/disclosures")
        logged = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
        told = {run.name: run for run in runs(audit)}
        assert logged.keys() == told.keys()
        for name, run in told.items():
            assert logged[name].info.status == "FINISHED"
            assert logged[name].data.params == run.params
            assert logged[name].data.metrics == run.metrics
            assert run.tags.items() <= logged[name].data.tags.items()
        (table,) = json.loads(logged[audit.name].data.tags["mlflow.loggedArtifacts"])
        assert table["path"] == "tables/tests.json"
        local = client.download_artifacts(logged[audit.name].info.run_id, table["path"])
        assert "test" in json.loads(Path(local).read_text())["columns"]


def test_no_private_text_is_kept(audited):
    kept = [path for path in audited.rglob("*") if path.is_file()]
    assert any(path.suffix == ".db" for path in kept)
    assert any("mlartifacts" in path.parts for path in kept)
    for path in kept:
        content = path.read_bytes()
        assert b"marmalade turbine" not in content, path
        assert b"inside7" not in content, path


def test_the_verdict_is_what_the_files_deserve(audited):
    findings = json.loads((audited / "findings.json").read_text())
    (only,) = findings["classes"]
    assert only["verdict"] == "leaks"
