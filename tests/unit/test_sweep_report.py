"""A sweep as figure, table, page and JSON."""

import io
import json
from dataclasses import replace

import pytest
from fakes.audits import CLAIM, round_audit
from jinja2 import UndefinedError
from matplotlib.colors import to_hex
from rich.console import Console

from coalmine.auditor.report import sweep as report
from coalmine.auditor.report.page import page
from coalmine.auditor.report.style import CLAIM as CLAIM_COLOUR
from coalmine.auditor.report.summary import rows
from coalmine.auditor.report.wording import down
from coalmine.auditor.sweep import Sweep, SweepPoint
from coalmine.protocol.errors import StorageError, StudyError
from coalmine.protocol.finding import Verdict

ATTACKS = ("ordinary", "nonce")


def point(values, attacks=ATTACKS, eps=1.5, **changes):
    """A point whose claim is ``eps``, so that it can be told from the others."""
    audit = round_audit(attacks, canaries=2, **changes)
    return SweepPoint(values, replace(audit, claim=replace(CLAIM, eps_pld_upper=eps)))


def over(key, values, **changes):
    """One key; the claim of each point is 1, 2, ..."""
    points = [point({key: value}, eps=1.0 + index, **changes) for index, value in enumerate(values)]
    return Sweep("ablation", (key,), tuple(points), {"votes": 1.0})


def lines(axes):
    """The lines of a panel by label: (x, y)."""
    return {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.get_lines()}


def test_the_table_has_a_row_for_every_point_and_attack_with_that_points_own_numbers():
    sweep = over("privacy.sigma", [0.5, 2.0])
    found = report.table(sweep)
    assert [(row["privacy.sigma"], row["attack"], row["claim ε"]) for row in found] == [
        ("0.5", "ordinary", "1.0000"), ("0.5", "nonce", "1.0000"),
        ("2", "ordinary", "2.0000"), ("2", "nonce", "2.0000"),
    ]  # fmt: skip
    nonce = rows(sweep.points[1].audit)[1]
    assert found[3]["exact ε"] == down(nonce.exact.eps_lower)
    assert found[3]["MC ε ≥"] == down(nonce.monte_carlo.eps_lower)
    assert found[3]["VR ε ≥"] == down(nonce.variance_reduced.eps_lower)
    assert found[3]["of claim"] == f"{nonce.exact.eps_lower / 2:.0%}"
    assert found[1]["of claim"] == f"{nonce.exact.eps_lower:.0%}", "each point is held against its own claim"


def test_a_contradicted_claim_is_counted_and_no_other_is():
    good, bad = point({"privacy.q": 0.1}), point({"privacy.q": 0.2}, verdict=Verdict.CONTRADICTED)
    for points, said in (((good,), "0 of 2"), ((good, bad), "2 of 4")):
        console = Console(width=120, record=True, file=io.StringIO())
        console.print(report.to_rich(Sweep("s", ("privacy.q",), points, {})))
        assert f"contradicted: {said}" in console.export_text()


def test_the_figure_draws_each_claim_and_each_attack_in_the_order_of_the_axis():
    sweep = over("privacy.sigma", [2.0, 0.5])
    (axes,) = report.figure(sweep).axes
    drawn = lines(axes)
    assert drawn["claim (PLD, upper)"] == ([0.5, 2.0], [2.0, 1.0])
    exact = rows(sweep.points[0].audit)[1].exact.eps_lower
    assert drawn["nonce"] == ([0.5, 2.0], [exact, exact])
    assert to_hex(axes.get_lines()[0].get_color()) == CLAIM_COLOUR


def test_claims_far_apart_are_drawn_on_a_logarithmic_axis():
    near = over("privacy.sigma", [1.0, 2.0])
    far = replace(near, points=(near.points[0], point({"privacy.sigma": 2.0}, eps=20.0)))
    assert [report.figure(sweep).axes[0].get_yscale() for sweep in (near, far)] == ["linear", "symlog"]
    assert report.figure(near).axes[0].get_ylim()[0] == 0


def test_categories_stand_in_the_order_of_the_file_and_paths_by_their_names():
    (axes,) = report.figure(over("bank.file", ["banks/zebra.parquet", None, "banks/ant.parquet"])).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["zebra.parquet", "none", "ant.parquet"]
    assert lines(axes)["claim (PLD, upper)"] == ([0, 1, 2], [1.0, 2.0, 3.0])


def test_an_attack_that_only_some_points_run_is_drawn_at_those():
    points = (point({"audit.probes": 8}, ("ordinary",)), point({"audit.probes": 16}, ("nonce", "ordinary")))
    figure = report.figure(Sweep("s", ("audit.probes",), points, {}))
    drawn = lines(figure.axes[0])
    assert drawn["ordinary"][0] == [8, 16]
    assert drawn["nonce"][0] == [16]
    assert [text.get_text() for text in figure.legends[0].get_texts()][1:] == ["ordinary", "nonce"]


def test_other_keys_become_panels_and_what_is_left_out_is_said():
    grid = [point({"privacy.q": q, "bank.size": size}) for q in (0.1, 0.2) for size in range(100, 900, 100)]
    figure = report.figure(Sweep("s", ("privacy.q", "bank.size"), tuple(grid), {}))
    assert [axes.get_title(loc="left") for axes in figure.axes] == [f"size = {size}" for size in range(100, 700, 100)]
    assert "2 more panels in the table" in " ".join(text.get_text() for text in figure.texts)


def test_claims_with_different_qualifiers_are_not_shown_under_the_first_ones():
    first = point({"privacy.delta": 1e-5})
    second = replace(first, values={"privacy.delta": 1e-6})
    second = replace(second, audit=replace(second.audit, claim=replace(second.audit.claim, delta=1e-6)))
    figure = report.figure(Sweep("s", ("privacy.delta",), (first, second), {}))
    assert any("δ = 1e-5 or δ = 1e-6 · neighbours: add" in text.get_text() for text in figure.texts)
    alone = report.figure(Sweep("s", ("privacy.delta",), (first,), {}))
    assert not any(" or δ" in text.get_text() for text in alone.texts)


def test_files(tmp_path):
    sweep = over("data.path", ["<script>alert(1)</script>", "b&b"])
    text = report.publish(sweep, tmp_path).read_text()
    assert "<script" not in text
    assert "b&amp;b" in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    for row in report.table(sweep):
        assert f"<td>{row['exact ε']}</td>" in text
    assert (tmp_path / "figures" / "sweep.png").stat().st_size > 10_000
    document = json.loads(
        (tmp_path / "sweep.json").read_text(), parse_constant=lambda word: pytest.fail(f"{word} is not JSON")
    )
    assert document["format"] == "coalmine sweep 1"
    assert [point["values"] for point in document["points"]] == [point.values for point in sweep.points]
    assert [point["findings"]["claim"]["eps_pld_upper"] for point in document["points"]] == [1.0, 2.0]


def test_a_sweep_that_cannot_be_drawn_is_refused(tmp_path):
    some = point({"privacy.q": 0.1})
    for keys, points in ((("privacy.q",), ()), ((), (some,))):
        with pytest.raises(StudyError, match="nothing was swept"):
            Sweep("s", keys, points, {})
    with pytest.raises(StudyError, match=r"needs one for each of privacy\.q, privacy\.sigma"):
        Sweep("s", ("privacy.q", "privacy.sigma"), (some,), {})
    in_the_way = tmp_path / "figures"
    in_the_way.write_text("a file")
    with pytest.raises(StorageError, match="figures"):
        report.publish(Sweep("s", ("privacy.q",), (some,), {}), tmp_path)
    assert not (tmp_path / "sweep.json").exists(), "what is not complete does not look complete"


def test_a_page_with_a_gap_is_an_error():
    with pytest.raises(UndefinedError):
        page("sweep.html.j2", {"rows": []})
