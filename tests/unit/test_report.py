import dataclasses
import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from fakes.audits import CLAIM, round_audit
from hypothesis import given
from hypothesis import strategies as st

from coalmine.auditor import runs
from coalmine.auditor.report import figures, html, record, style, wording
from coalmine.auditor.report.publish import publish
from coalmine.auditor.report.table import to_markdown
from coalmine.auditor.result import RoundAudit
from coalmine.protocol.errors import StorageError
from coalmine.protocol.finding import Verdict


@pytest.fixture(scope="module")
def audit() -> RoundAudit:
    return round_audit(("ordinary", "exact", "nonce"), canaries=2)


def with_first_canary(audit: RoundAudit, **changes: object) -> RoundAudit:
    attack = audit.attacks[0]
    canary = dataclasses.replace(attack.canaries[0], **changes)
    changed = dataclasses.replace(attack, canaries=(canary, *attack.canaries[1:]))
    return dataclasses.replace(audit, attacks=(changed, *audit.attacks[1:]))


def test_findings_survive_the_way_through_json(audit):
    assert record.from_json(json.loads(record.dumps(audit))) == audit


def test_findings_are_strict_json_even_when_numbers_are_not_finite(audit):
    canary = audit.attacks[0].canaries[0]
    odd = dataclasses.replace(canary.monte_carlo, details={"a/b~c": math.inf, "threshold": -math.inf, "tp": 3.0})
    changed = with_first_canary(audit, monte_carlo=odd, mu_eff=math.inf)
    text = record.dumps(changed)
    document = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert document["attacks"][0]["canaries"][0]["mu_eff"] is None
    assert document["not_finite"]["/attacks/0/canaries/0/mu_eff"] == "inf"
    assert document["not_finite"]["/attacks/0/canaries/0/monte_carlo/details/a~1b~0c"] == "inf"
    assert record.from_json(document) == changed


@pytest.mark.parametrize(
    ("damage", "place"),
    [
        (lambda d: d.update(format="other"), "format"),
        (lambda d: d["claim"].pop("delta"), "/claim/delta"),
        (lambda d: d["claim"].update(adjacency="replace"), "/claim/adjacency"),
        (lambda d: d["attacks"][0]["canaries"][0].update(mu_eff=None), "/attacks/0/canaries/0/mu_eff"),
        (lambda d: d.update(surprise=1), "does not know"),
        (lambda d: d.update(not_finite={"/nowhere/0": "inf"}), "not_finite"),
    ],
)
def test_damaged_findings_are_refused(audit, damage, place):
    document = json.loads(record.dumps(audit))
    damage(document)
    with pytest.raises(StorageError, match=place):
        record.from_json(document)


def test_a_findings_file_that_is_missing_or_cut_is_refused(audit, tmp_path):
    with pytest.raises(StorageError, match=r"findings\.json"):
        record.read(tmp_path / "findings.json")
    path = record.write(audit, tmp_path)
    assert record.read(path) == audit
    path.write_text(path.read_text(encoding="utf-8")[:1000], encoding="utf-8")
    with pytest.raises(StorageError, match="not a JSON file"):
        record.read(path)


@given(st.floats(0, 8), st.floats(0, 0.2))
def test_the_dp_border_holds_both_inequalities_in_both_directions(eps, delta):
    fpr = np.linspace(0, 1, 41)
    lowest, highest = figures.dp_border(fpr, eps, delta)
    assert np.all((lowest >= 0) & (highest <= 1) & (lowest <= fpr + 1e-12) & (fpr <= highest + 1e-12))
    for tpr in (lowest, highest):
        slack = 1e-9 * math.exp(eps)
        assert np.all(tpr <= math.exp(eps) * fpr + delta + slack)
        assert np.all(fpr <= math.exp(eps) * tpr + delta + slack)
        assert np.all(1 - fpr <= math.exp(eps) * (1 - tpr) + delta + slack)
        assert np.all(1 - tpr <= math.exp(eps) * (1 - fpr) + delta + slack)


@pytest.mark.parametrize("name", figures.FIGURES)
def test_figures_are_the_same_bytes_every_time_and_take_any_attack(audit, name):
    first, second = (style.svg(figures.FIGURES[name](audit)) for _ in range(2))
    assert first == second
    assert style.png(figures.FIGURES[name](round_audit(("exact",), canaries=1)))[:4] == b"\x89PNG"


def test_one_waterfall_can_be_asked_for_by_name(audit):
    figure = figures.waterfalls(audit, ["exact"])
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["exact, real user"]


class Page(HTMLParser):
    """Ids, references and tags of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for key, value in attrs:
            if key == "id":
                self.ids.append(value)
            elif key in ("src", "href", "xlink:href", "action", "data"):
                self.targets.append(value)


def test_the_report_is_one_self_contained_file(audit, tmp_path):
    path = publish(audit, tmp_path / "study")
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    assert all(target.removeprefix("#") in page.ids for target in page.targets), "something points out of the page"
    assert {"#" + found for found in page.ids} >= {f"#{name}" for name in re.findall(r"url\(#([^)]+)\)", text)}
    assert not page.tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    assert "@import" not in text
    assert "url(http" not in text
    written = sorted(p.relative_to(tmp_path / "study").as_posix() for p in path.parent.rglob("*") if p.is_file())
    drawings = [f"figures/{name}.{kind}" for name in sorted(figures.FIGURES) for kind in ("png", "svg")]
    assert written == [*drawings, "findings.json", "report.html"]


def test_what_others_wrote_is_escaped(audit):
    changed = dataclasses.replace(audit, study="<script>x</script>", facts={"<b>": "<img src=//elsewhere>"})
    page = Page(html.render(changed, dict.fromkeys(figures.FIGURES, "<svg viewBox='0 0 1 1'></svg>")))
    assert not page.tags & {"script", "img"}


def test_the_report_carries_every_qualifier_and_the_caveats(audit):
    text = html.render(audit, dict.fromkeys(figures.FIGURES, "<svg></svg>"))
    wanted = (CLAIM.adjacency, CLAIM.unit, CLAIM.threat_model, "1e-5", "formal", "exact", "simulated", "recompute")
    for word in (*wanted, wording.CAVEAT, audit.bank_digest, "0.41"):
        assert word in text, word
    unreplayed = html.render(round_audit(("nonce",), replayed=False), dict.fromkeys(figures.FIGURES, "<svg></svg>"))
    assert "No rounds were replayed" in unreplayed


def test_the_answer_says_what_the_numbers_say_and_no_more():
    consistent = " ".join(wording.answer(round_audit()))
    assert "at most 1.6845" in consistent
    assert "8 attacks, nonce-mu, reaches an exact epsilon of 1.662, 99% of the promise" in consistent
    assert "real user, ordinary, reaches 0.776, 46%" in consistent
    assert "no contradiction found" in consistent
    assert "does not prove" in consistent
    contradicted = " ".join(wording.answer(round_audit(("exact", "nonce"), verdict=Verdict.CONTRADICTED)))
    assert "claim contradicted by exact and nonce" in contradicted
    assert "nothing corrects for the number of attacks" in contradicted
    assert wording.answer(round_audit(())) == ("No attack was run.",)


@given(st.floats(0, 100))
def test_a_lower_bound_is_never_rounded_up(value):
    assert float(wording.down(value)) <= value + 1e-9
    assert float(wording.down(value)) > value - 0.001 - 1e-9


@pytest.mark.parametrize(
    ("share", "text"), [(0.46, "46%"), (0.9949, "99%"), (0.9996, "99.9%"), (1.0, "100%"), (1.002, "100.2%")]
)
def test_almost_all_is_not_all(share, text):
    assert wording.percent(share) == text


def test_runs_are_a_study_with_its_round_and_its_attacks(audit):
    study, one_round, *attacks = runs.runs(audit)
    assert [run.tags["kind"] for run in (study, one_round, *attacks)] == ["study", "round"] + ["attack"] * 3
    assert [run.name for run in attacks] == ["ordinary", "exact", "nonce"]
    assert study.metrics["eps/theory"] == CLAIM.eps_pld_upper
    assert study.metrics["cohort/expected"] == 100.0
    assert study.metrics["eps/exact"] == max(run.metrics["eps/exact"] for run in attacks)
    assert all(run.metrics["tightness"] == run.metrics["eps/exact"] / CLAIM.eps_pld_upper for run in attacks)
    assert all(run.tags["assurance/exact"] == "exact" and run.tags["unit"] == "user" for run in attacks)


def test_runs_turn_what_is_not_finite_into_tags_and_say_what_they_cut(audit):
    odd = with_first_canary(
        audit, mu_eff=math.inf, exact=dataclasses.replace(audit.attacks[0].strongest.exact, eps_lower=9.0)
    )
    ordinary = next(run for run in runs.runs(odd) if run.name == "ordinary")
    assert "mu_eff" not in ordinary.metrics
    assert ordinary.tags["not_finite/mu_eff"] == "inf"
    long = dataclasses.replace(audit, facts={"böse: kéy?": "x" * 9000})
    study = runs.runs(long)[0]
    cut = next(value for key, value in study.tags.items() if key.startswith("fact/"))
    assert len(cut) == 5000
    assert cut.endswith("(9000 characters)")
    assert all(re.fullmatch(r"[\w\-./: ]+", key, flags=re.ASCII) for run in runs.runs(long) for key in run.tags)


def test_runs_hold_no_vote(audit):
    told = json.dumps([dataclasses.asdict(run) for run in runs.runs(audit)])
    assert str(audit.attacks[0].canaries[0].probe_votes.canary[0]) not in told


def blank_page(audit):
    return html.render(audit, dict.fromkeys(figures.FIGURES, "<svg></svg>"))


def test_the_card_is_the_largest_bound_of_all_attacks_and_names_its_attack(audit):
    counted = dataclasses.replace(audit.attacks[0].canaries[0].monte_carlo, eps_lower=1.2345)
    changed = with_first_canary(audit, monte_carlo=counted)
    assert "at least 1.234 by counting (ordinary)" in " ".join(wording.answer(changed))
    card = blank_page(changed).split("certified by counting</span>")[1].split("</div>")[0]
    assert "<b>1.234</b>" in card
    assert "ordinary" in card


def test_a_weak_audit_is_called_weak_and_another_is_not():
    weak, strong = round_audit(("exact",)), round_audit(("exact", "nonce"))
    assert "This audit was weak" in blank_page(weak)
    assert "not good news" in blank_page(weak)
    assert "was weak" not in blank_page(strong)
    assert wording.weakness(0.5) == ()


def test_what_may_look_like_two_values_for_one_thing_is_explained(audit):
    for text in (blank_page(audit), to_markdown(audit)):
        assert wording.LARGEST in text.replace("&#39;", "'")
        assert wording.ROUNDED in text


def test_long_tables_are_folded_and_quantiles_have_columns_of_their_own():
    text = blank_page(round_audit(("paraphrase",)))
    folded = text.split("Every comparison (1)</summary>")[1].split("</details>")[0]
    assert folded.count("<tr>") == 2
    assert '<td class="n">≥ 0.6</td><td class="n">0.60</td><td class="n">0.74</td><td class="n">0.81</td>' in text
    assert "cosine of the two embeddings" not in blank_page(round_audit(("nonce",)))
