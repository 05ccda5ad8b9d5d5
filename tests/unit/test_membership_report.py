"""What is shown, written and tracked of training and its audit."""

import json
from io import StringIO

from fakes.membership import everything, membership, trained
from rich.console import Console

from coalmine.auditor.membership.result import audit_json, trained_json
from coalmine.auditor.membership.runs import audit_records, audit_runs, trained_runs
from coalmine.auditor.membership.table import audit_rich, heading, legend, trained_rich
from coalmine.protocol.finding import Verdict


def shown(renderable, width=80):
    console = Console(file=StringIO(), width=width)
    console.print(renderable)
    return console.file.getvalue()


def test_every_number_comes_with_its_qualifiers():
    page = shown(audit_rich(membership()))
    qualifiers = ("formal", "heuristic", "add/remove", "record", "δ = 1e-5", "PLD", "PRV", "ceiling", "dropped")
    for word in (*qualifiers, "A note."):
        assert word in page, word
    assert "no contradiction found" in page
    assert "…" not in page  # 80 columns are enough
    assert "accuracy 0.800" in shown(trained_rich(trained())) or "0.800 on 50" in shown(trained_rich(trained()))


def test_every_word_of_the_headings_is_resolved_below_the_table():
    page = " ".join(shown(audit_rich(membership())).split())
    for words in (
        "cp: Clopper-Pearson",
        "bonf.: Bonferroni over all thresholds",
        "holdout: threshold",
        "best: uncorrected maximum",
        "ratio: log ratio",
        "gdp: read off",
    ):
        assert words in page, words
    told = {part.partition(":")[0] for part in legend(everything()).split("; ")}
    used = {word for one in everything().arms[0].subjects[0].repeated for word in heading(one.method).split()}
    assert used <= told
    assert "steinke" not in told, "only words that stand above a column"


def test_the_terminal_says_whose_view_is_whose():
    page = " ".join(shown(audit_rich(membership())).split())
    assert "the claim's attacker sees every noised update" in page
    assert "the attack sees: the final model" in page


def test_a_formal_bound_above_the_claim_contradicts_it():
    assert membership().verdict is Verdict.CONSISTENT
    found = membership(shift=9.0)
    assert found.verdict is Verdict.CONTRADICTED
    assert "claim contradicted" in shown(audit_rich(found))
    assert audit_json(found)["verdict"] == "claim contradicted"


def test_findings_are_strict_json():
    for document in (audit_json(membership(9.0)), trained_json(trained())):
        assert json.loads(json.dumps(document, allow_nan=False)) == document
    one = audit_json(membership())["arms"][0]["subjects"][0]["findings"]
    assert len(one) == 2
    assert {evidence["assurance"] for evidence in one[0]["evidence"]} == {"formal", "heuristic"}


def test_runs_say_how_much_each_number_proves():
    found = membership()
    whole, first, second = audit_runs(found)
    assert whole.tags["kind"] == "membership"
    assert whole.metrics["eps/theory"] == found.claim.eps_pld_upper
    assert (first.name, second.name) == ("mislabeled, without filter", "mislabeled, with filter")
    assert first.tags["assurance/gdp"] == "heuristic"
    assert first.tags["assurance/clopper_pearson_holdout"] == "formal"
    assert first.metrics["eps/lower/gdp"] == found.arms[0].subjects[0].repeated[-1].mean
    (only,) = trained_runs(trained())
    assert only.metrics["utility/accuracy"] == 0.8
    assert len(audit_records(found)) == 2 * 2 * 6
    assert {row["unit"] for row in audit_records(found)} == {"record"}
