"""The one-run audit through real shards and a real aggregator on Ray."""

import json
import sqlite3
from dataclasses import replace

import pytest
import yaml
from command import coalmine
from rich.console import Console

from coalmine.clients.encoder.fake import HashEncoder
from coalmine.deploy.cluster import cluster
from coalmine.deploy.progress import Stages
from coalmine.deploy.study_file import build_study

pytestmark = pytest.mark.integration

_STUDY = {
    "study": "many-canaries",
    "seed": 4,
    "data": {
        "source": "personas",
        "users": 64,
        "records_per_user": 6,
        "min_records": 4,
        "auxiliary": 20,
        "calibration": 10,
        "test": 30,
    },
    "bank": {"size": 360},
    "privacy": {"max_records": 8, "q": 1.0, "sigma": 0.4},
    "audit": {
        "canaries": 1,
        "canary_records": 6,
        "probes": 6,
        "pool": 8,
        "one_run": {"canaries": 60, "probes_each": 5, "records": 2, "guesses": [15, 15]},
    },
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The audit of the same study with one worker and with two, and of one with more noise."""
    from coalmine.deploy.campaign import Workshop
    from coalmine.deploy.one_run import run_one_run
    from coalmine.deploy.parts import generator
    from coalmine.deploy.prepare import people

    cache = tmp_path_factory.mktemp("cache")
    audits = {}
    with cluster(2, 256 << 20):
        for name, workers, changes in (("one", 1, ()), ("two", 2, ()), ("noisy", 2, ("privacy.sigma=40",))):
            study = build_study({**_STUDY, "privacy": dict(_STUDY["privacy"])}, changes)
            workshop = Workshop(HashEncoder(64), generator(study, cache), Stages(Console(quiet=True)), workers)
            audits[name] = run_one_run(study, people(study), workshop)
    return audits


def test_included_canaries_are_told_from_the_others(found):
    audit = found["one"].audit
    assert audit.guesses.canaries == 60
    assert audit.guesses.correct >= 28
    assert 1 < audit.steinke.eps_lower < audit.claim.eps_pld_upper
    assert not audit.curve_rejected, "the mechanism keeps its claim"
    assert audit.claim_p_value > 0.5


def test_more_workers_change_nothing(found):
    one, two = (replace(found[name], seconds={}) for name in ("one", "two"))
    assert one == two


def test_noise_hides_the_canaries(found):
    noisy = found["noisy"].audit
    assert noisy.guesses.correct < 25
    assert noisy.steinke.eps_lower < 0.5
    assert noisy.gaussian.eps_lower < 0.5


def test_the_gaussian_reading_sees_more_than_counting_and_less_than_everything(found):
    """Everybody takes part, so that the scores are Gaussian indeed."""
    audit = found["one"].audit
    assert audit.steinke.eps_lower < audit.gaussian.eps_lower < audit.claim.eps_pld_upper
    assert len(audit.inside) + len(audit.outside) == 60


@pytest.mark.long
def test_the_command_leaves_page_picture_and_a_run_beside_the_study(tmp_path):
    """As a user calls it, with the encoder that is installed."""
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(_STUDY))
    done = coalmine("audit", "one-run", "study.yaml", "--json", cwd=tmp_path, cache=tmp_path / "cache")
    results = tmp_path / "runs" / "many-canaries"
    assert sorted(path.relative_to(results).as_posix() for path in (results / "one-run").rglob("*.*")) == [
        "one-run/figures/one-run.png",
        "one-run/figures/one-run.svg",
        "one-run/one-run.json",
        "one-run/report.html",
    ]
    logged = {path.relative_to(results / "mlartifacts").parts[-1] for path in (results / "mlartifacts").rglob("*.*")}
    assert logged == {"one-run.png", "one-run.svg", "report.html", "canaries.json"}
    assert json.loads(done.stdout) == json.loads((results / "one-run" / "one-run.json").read_text())
    with sqlite3.connect(results / "mlflow.db") as database:
        tags = dict(database.execute("SELECT key, value FROM tags").fetchall())
        metrics = dict(database.execute("SELECT key, value FROM latest_metrics").fetchall())
    assert tags["kind"] == "one-run"
    assert tags["assurance/one-run/steinke"] == "formal"
    assert tags["assurance/one-run/gaussian"] == "heuristic"
    shown = json.loads(done.stdout)["audit"]
    assert metrics["eps/lower/one-run/gaussian"] == shown["gaussian"]["eps_lower"]
    assert metrics["eps/theory"] == shown["claim"]["eps_pld_upper"]
