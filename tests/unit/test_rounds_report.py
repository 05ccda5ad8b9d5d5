"""Audited rounds as table, page, JSON and runs."""

import io
import json
from dataclasses import replace

import pytest
from fakes.audits import round_audit
from fakes.rounds import CLAIMED, UTILITY, path, rounds_audit
from rich.console import Console

from coalmine.auditor.report import rounds, wording
from coalmine.auditor.report.rounds_figure import privacy_and_utility
from coalmine.auditor.rounds.study import contradicted, largest, strongest, verdict
from coalmine.auditor.runs import rounds_runs
from coalmine.protocol.finding import Evidence, Verdict
from coalmine.protocol.privacy import Assurance


def printed(audit, width):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(rounds.to_rich(audit, width))
    return console.export_text()


def exaggerated(audit):
    """One attack after the second round shows a little more than is promised."""
    path = audit.paths["nonce-mu"][0]
    second = path.prefixes[1]
    broken = replace(second, exact=replace(second.exact, eps_lower=CLAIMED[1] + 1e-6))
    changed = replace(path, prefixes=(path.prefixes[0], broken, path.prefixes[2]))
    return replace(audit, paths={**audit.paths, "nonce-mu": (changed, *audit.paths["nonce-mu"][1:])})


def test_values_are_the_largest_over_canaries():
    audit = rounds_audit()
    assert largest(audit.paths["ordinary"], 2, "exact") == pytest.approx(0.9 * CLAIMED[1])
    assert strongest(audit.paths["ordinary"], 2).exact.eps_lower == pytest.approx(0.9 * CLAIMED[1])


def test_one_prefix_above_its_claim_is_a_contradiction_and_says_where():
    assert verdict(rounds_audit()) is Verdict.CONSISTENT
    broken = exaggerated(rounds_audit())
    assert contradicted(broken) == [("nonce-mu", 2)]
    assert verdict(broken) is Verdict.CONTRADICTED
    assert "claim contradicted" in printed(broken, 100)


@pytest.mark.parametrize(("width", "shown"), [(66, ["1", "3"]), (120, ["1", "2", "3"])])
def test_a_narrow_terminal_shows_first_and_last(width, shown):
    lines = printed(rounds_audit(UTILITY), width).splitlines()
    header = next(line for line in lines if "attack" in line)
    assert [cell.strip() for cell in header.strip("┃").split("┃")[1 : 1 + len(shown)]] == shown
    assert "…" not in "".join(lines)
    assert any("ceiling" in line for line in lines)


def page_of(audit):
    return rounds._page(audit, "<svg viewBox='0 0 1 1'></svg>")


def table_below(page, heading):
    return page.split(f"<h2>{heading} after each round</h2>")[1].split("</table>")[0]


def test_the_page_says_what_its_numbers_mean():
    page = page_of(rounds_audit(UTILITY))
    assert "After 3 rounds ordinary, the strongest of the attacks, reaches an exact epsilon of 1.485" in page
    assert "90% of the claim" in page
    for word in ("no proof of privacy", 'href="report.html"', wording.ROUNDED, "Real against real", "<dt>Canary</dt>"):
        assert word in page, word
    assert "was weak" not in page
    assert "no proof of privacy" not in page_of(exaggerated(rounds_audit()))
    assert rounds.answer(replace(rounds_audit(), paths={})) == ("No attack was run.",)


def test_claims_stand_above_exact_values_and_nowhere_among_bounds():
    page = page_of(rounds_audit())
    assert "claim (PLD)" in table_below(page, "exact ε")
    assert "claim" not in table_below(page, "MC ε ≥") + table_below(page, "VR ε ≥")


def test_a_weak_audit_is_called_weak():
    weak = {"exact": (path("exact", 1, 0.4),)}
    page = page_of(replace(rounds_audit(), paths=weak))
    assert "This audit was weak: its strongest attack reaches 40% of the promise" in page


def test_bounds_of_zero_are_explained_where_there_are_some():
    nothing = path("exact", 1, 0.001)
    note = "too few trials were drawn"
    assert note in page_of(replace(rounds_audit(), paths={**rounds_audit().paths, "exact": (nothing,)}))
    assert note not in page_of(rounds_audit())


def test_files(tmp_path):
    page = rounds.publish(rounds_audit(UTILITY), tmp_path)
    text = page.read_text()
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "1.350" in text or "1.35" in text
    document = json.loads((tmp_path / "rounds.json").read_text())
    assert document["format"] == rounds.FORMAT
    assert document["paths"]["nonce-mu"][0]["prefixes"][2]["rounds"] == 3
    assert (tmp_path / "figures" / "rounds.png").stat().st_size > 10_000


def replicated(audit, eps):
    """Adaptive replicas of one attack that certify so much after each round."""
    found = tuple(Evidence("adaptive replicas", Assurance.FORMAL, one, 0.99, None, {"trials": 8.0}) for one in eps)
    return replace(audit, replicas={"nonce-mu": found})


def test_replicas_reach_page_table_figure_json_and_runs(tmp_path):
    audit = replicated(rounds_audit(attacks=("ordinary", "nonce-mu")), (0.111, 0.222, 0.333))
    text = rounds.publish(audit, tmp_path).read_text()
    assert "Adaptive replicas" in text
    for value in ("2 × 8", "0.111", "0.222", "0.333"):
        assert f'<td class="n">{value}</td>' in text
    assert "0.222" in printed(audit, 120)
    lines = {line.get_label(): list(line.get_ydata()) for line in privacy_and_utility(audit).axes[0].get_lines()}
    assert lines["nonce-mu, replicas (formal)"] == [0.111, 0.222, 0.333]
    assert "ordinary, replicas (formal)" not in lines
    document = json.loads((tmp_path / "rounds.json").read_text())
    assert document["replicas"]["nonce-mu"][1]["eps_lower"] == 0.222
    study, *rest = rounds_runs(round_audit(("ordinary", "nonce-mu"), canaries=2), audit)
    assert [metrics["eps/lower/replicas"] for _, metrics in study.series] == [0.111, 0.222, 0.333]
    attacks = {run.name: run for run in rest if run.tags["kind"] == "attack"}
    assert attacks["nonce-mu"].tags["assurance/replicas"] == "formal"
    assert "banks of their own" in attacks["nonce-mu"].tags["conditional/replicas"]
    assert not any("replicas" in key for key in attacks["ordinary"].tags)
    table = {(row["attack"], row["canary"], row["rounds"]): row["eps_replicas"] for row in rounds.records(audit)}
    assert [table["nonce-mu", 1, number] for number in (1, 2, 3)] == [0.111, 0.222, 0.333]
    assert table["nonce-mu", 2, 1] is table["ordinary", 1, 1] is None


def test_replicas_above_the_claim_contradict_it():
    assert contradicted(replicated(rounds_audit(), (0.0, CLAIMED[1], 0.0))) == []
    assert contradicted(replicated(rounds_audit(), (0.0, CLAIMED[1] + 1e-6, 0.0))) == [("nonce-mu", 2)]


def test_without_replicas_nothing_speaks_of_them(tmp_path):
    assert "replicas" not in rounds.publish(rounds_audit(), tmp_path).read_text()


def test_runs_have_a_value_after_every_round():
    over = rounds_audit(UTILITY, attacks=("ordinary", "nonce"))
    found = rounds_runs(round_audit(("ordinary", "nonce"), canaries=2), over)
    study, *rest = found
    assert [step for step, _ in study.series] == [1, 2, 3]
    assert study.series[2][1]["eps/exact"] == pytest.approx(0.9 * CLAIMED[2])
    assert study.series[2][1]["utility/mauve"] == pytest.approx(0.65)
    kinds = [run.tags["kind"] for run in rest]
    assert kinds == ["round"] * 3 + ["attack"] * 2
    assert all("on the banks" in run.tags["conditional"] for run in rest)
