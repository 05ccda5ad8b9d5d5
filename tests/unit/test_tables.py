import dataclasses
import io

import pytest
from fakes.audits import round_audit
from rich.console import Console

from coalmine.auditor.attacks import ATTACKS
from coalmine.auditor.report import table
from coalmine.protocol.finding import Verdict


def printed(audit, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(table.to_rich(audit, width))
    return console.file.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_fits_the_terminal_and_cuts_nothing(width):
    text = printed(round_audit(), width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for name in ATTACKS:
        assert f"│ {name} " in text
    for wanted in ("ε ≤ 1.6845", "PRV 1.695", "δ = 1e-5", "add/remove", "unit: user", "release only", "0.776", "1.662"):
        assert wanted in text
    assert ("exact ε, support" in text) == (width == 120)


def test_markdown_has_the_same_cells_and_one_bar_per_cell():
    audit = round_audit()
    lines = [line for line in table.to_markdown(audit).splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(ATTACKS)
    assert {line.count("|") for line in lines} == {9}
    assert "| nonce-mu | nonce user | 1.662 | 1.647 | 0.979 | 1.354 | 99% | 0.994 |" in lines


def test_a_contradicted_claim_is_the_last_word():
    assert printed(round_audit(("nonce",), verdict=Verdict.CONTRADICTED), 80).rstrip().endswith("claim contradicted")
    assert printed(round_audit(("nonce",)), 80).rstrip().endswith("no contradiction found")


def test_an_error_that_shows_in_the_digits_is_given():
    evidence = round_audit(("nonce",), canaries=1).attacks[0].canaries[0].exact
    assert table.exactly(evidence) == "1.602"
    assert table.exactly(dataclasses.replace(evidence, error=0.002)) == "1.602 +0.002"


def test_a_column_for_other_coordinates_appears_only_where_they_were_scored():
    assert "elsewhere" not in table.to_markdown(round_audit(("ordinary",)))
    assert "support" not in table.to_markdown(round_audit(("ordinary",)))


def test_records_have_one_row_per_canary():
    rows = table.records(round_audit(("exact", "nonce"), canaries=3))
    assert [(row["attack"], row["canary"]) for row in rows] == [(a, c) for a in ("exact", "nonce") for c in (1, 2, 3)]
