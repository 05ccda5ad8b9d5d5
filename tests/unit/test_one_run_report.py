"""A one-run audit as figure, table, page, JSON and run."""

import io
import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from fakes.audits import CLAIM, MECHANISM
from rich.console import Console
from scipy.stats import norm

from coalmine.auditor.one_run import Guesses
from coalmine.auditor.one_run_audit import OneRunStudy, audit
from coalmine.auditor.one_run_runs import one_run_runs
from coalmine.auditor.report import one_run as report
from coalmine.auditor.report.one_run_figure import readings
from coalmine.auditor.report.wording import down
from coalmine.auditor.runs import stage_metrics
from coalmine.protocol.errors import StorageError


@pytest.fixture(scope="module")
def found() -> OneRunStudy:
    scores = norm.ppf((np.arange(200) + 0.5) / 200)
    said = audit(Guesses(400, 60, 34), 40, 20, CLAIM, 0.05, scores + 0.6, scores)
    return OneRunStudy("many", MECHANISM, 1000, 8192, 4, 5, "simulated", "b" * 64, "d" * 64, said, {"data": "a & b"})


@pytest.fixture(scope="module")
def broken(found) -> OneRunStudy:
    return replace(found, audit=replace(found.audit, curve_rejected=True))


def printed(found):
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(report.to_rich(found))
    return console.export_text()


def test_every_number_names_its_assurance_and_is_held_against_the_claim_with_participation(found):
    rows = {row["reading"]: row for row in report.table(found)}
    assert {name: row["assurance"] for name, row in rows.items()} == {
        "steinke": "formal", "claim-family": "heuristic", "gdp": "heuristic", "gaussian": "heuristic",
    }  # fmt: skip
    gaussian = found.audit.gaussian.eps_lower
    assert gaussian > 0
    assert rows["gaussian"]["ε ≥"] == down(gaussian)
    assert rows["gaussian"]["of claim"] == f"{gaussian / CLAIM.eps_pld_upper:.0%}"
    assert "participation q = 0.1 included" in report.headline(found)
    assert f"claim ε ≤ {CLAIM.eps_pld_upper:.4f}" in report.headline(found)
    assert all("formal" in line for line in report.tests(found.audit))


def test_only_a_formal_test_contradicts(found, broken):
    much = replace(found.audit.gaussian, eps_lower=9.0)
    high = replace(found, audit=replace(found.audit, gaussian=much))
    assert "no contradiction found" in printed(found)
    assert "no contradiction found" in printed(high)
    assert "claim contradicted" in printed(broken)
    assert "participation included: rejected" not in report.tests(found.audit)[1]


def test_the_figure_shows_readings_claim_and_scores(found):
    bars, scores = readings(found).axes
    assert [patch.get_width() for patch in bars.patches] == [one.eps_lower for one in found.audit.evidence]
    assert [line.get_xdata()[0] for line in bars.get_lines()] == [CLAIM.eps_pld_upper]
    assert [bool(patch.get_hatch()) for patch in bars.patches] == [False, True, True, True]
    assert [text.get_text() for text in scores.get_legend().get_texts()] == [
        "200 excluded, Gaussian fit",
        "200 included, Gaussian fit",
    ]


def test_a_side_without_scores_can_be_drawn(found):
    alone = replace(found, audit=replace(found.audit, inside=(), outside=(0.5,)))
    assert len(readings(alone).axes) == 2


def test_files(found, broken, tmp_path):
    text = report.publish(found, tmp_path).read_text()
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "a &amp; b" in text
    assert "no contradiction found" in text
    assert '<span class="heuristic">heuristic</span>' in text
    assert (tmp_path / "figures" / "one-run.png").stat().st_size > 10_000
    document = json.loads(
        (tmp_path / "one-run.json").read_text(), parse_constant=lambda word: pytest.fail(f"{word} is not JSON")
    )
    assert document["format"] == report.FORMAT
    assert document["audit"]["claim"]["q"] == 0.1
    assert document["audit"]["gaussian"]["assurance"] == "heuristic"
    assert document["verdict"] == "no contradiction found"
    assert 'class="bad">claim contradicted' in report.publish(broken, tmp_path).read_text()


def test_a_folder_that_cannot_be_written_is_said(found, tmp_path):
    (tmp_path / "figures").write_text("a file")
    with pytest.raises(StorageError, match="figures"):
        report.publish(found, tmp_path)
    assert not (tmp_path / "one-run.json").exists()


def test_the_run_has_every_reading_with_its_assurance_and_no_score(found):
    (run,) = one_run_runs(found)
    assert run.metrics["eps/theory"] == CLAIM.eps_pld_upper
    for one in found.audit.evidence:
        assert run.metrics[f"eps/lower/{one.method}"] == one.eps_lower
        assert run.tags[f"assurance/{one.method}"] == one.assurance.value
    assert run.tags["kind"] == "one-run"
    assert run.tags["adjacency"] == "add/remove"
    assert run.tags["verdict"] == "no contradiction found"
    assert run.metrics["cohort/expected"] == pytest.approx(120)
    assert str(found.audit.inside[0]) not in json.dumps(asdict(run))
    assert [row["assurance"] for row in report.records(found)] == ["formal", *["heuristic"] * 3]


def test_stages_are_metrics_with_readable_names():
    seconds = {"embed users' records": 1.5, "round 2: vote": 0.5}
    assert stage_metrics(seconds) == {"seconds/embed-users-records": 1.5, "seconds/round-2-vote": 0.5}
