"""Findings of several runs in one table: read, kept apart, shown; and what is refused."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from fakes.audits import CLAIM, MECHANISM, round_audit
from fakes.disclosures import secrets, world
from fakes.membership import membership, one_study, swept, trained
from fakes.rounds import rounds_audit
from scipy.stats import norm

from coalmine.auditor.disclosure.assignment import AssignmentKind, declare
from coalmine.auditor.disclosure.audit import audit_disclosures
from coalmine.auditor.disclosure.report import record as disclosure_record
from coalmine.auditor.disclosure.settings import Settings
from coalmine.auditor.joined.disclosure_rows import disclosure_rows
from coalmine.auditor.joined.records import read_folders
from coalmine.auditor.joined.report import wording
from coalmine.auditor.joined.report.figure import MOST_ROWS, claims_and_bounds
from coalmine.auditor.joined.report.publish import all_rows, publish, to_json
from coalmine.auditor.joined.row import Bound, Kind, by_setting, largest
from coalmine.auditor.joined.training_rows import membership_rows, trained_rows
from coalmine.auditor.joined.vote_rows import one_run_rows, round_rows, rounds_rows
from coalmine.auditor.membership.result import Audited, audit_json, audited_json, trained_json
from coalmine.auditor.one_run import Guesses
from coalmine.auditor.one_run_audit import OneRunStudy
from coalmine.auditor.one_run_audit import audit as hold
from coalmine.auditor.report import one_run, record, rounds, sweep
from coalmine.auditor.report.style import png
from coalmine.auditor.report.wording import down
from coalmine.auditor.report.write import write_json
from coalmine.auditor.sweep import Sweep, SweepPoint
from coalmine.deploy import cli
from coalmine.protocol.errors import StorageError, StudyError
from coalmine.protocol.finding import Evidence, Verdict
from coalmine.protocol.privacy import Assurance

FORMAL, EXACT, HEURISTIC = Assurance.FORMAL, Assurance.EXACT, Assurance.HEURISTIC


def synthetic(kind=AssignmentKind.BERNOULLI, **settings):
    material = world(300, 0.3)
    return audit_disclosures(material, [secrets()], declare(kind, None, material.train), Settings(**settings)).audit


def many():
    scores = norm.ppf((np.arange(100) + 0.5) / 100)
    said = hold(Guesses(200, 60, 34), 40, 20, CLAIM, 0.05, scores + 0.6, scores)
    return OneRunStudy("many", MECHANISM, 1000, 8192, 4, 5, "simulated", "b" * 64, "d" * 64, said)


def kept(path, document):
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_json(path, document)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One finished run of each kind, as the commands leave them."""
    place = tmp_path_factory.mktemp("runs")
    points = [
        SweepPoint({"privacy.sigma": sigma}, round_audit(("nonce",), canaries=1, replayed=False)) for sigma in (1, 2)
    ]
    kept(place / "round" / "findings.json", record.to_json(round_audit(("ordinary", "nonce"), canaries=2)))
    kept(place / "rounds" / "rounds.json", rounds.to_json(rounds_audit()))
    kept(place / "sweep" / "sweep.json", sweep.to_json(Sweep("noise", ("privacy.sigma",), tuple(points), {})))
    kept(place / "many" / "one-run" / "one-run.json", one_run.to_json(many()))
    kept(place / "trained" / "training" / "findings.json", trained_json(trained()))
    kept(place / "filter" / "training" / "findings.json", trained_json(trained()))
    kept(place / "filter" / "training" / "membership.json", audited_json(one_study()))
    kept(place / "claims" / "training" / "membership.json", audited_json(swept()))
    kept(place / "release" / "findings.json", disclosure_record.to_json(synthetic(claimed_eps=9.0)))
    return place


def test_every_kind_of_record_is_read_whole(runs):
    found = read_folders(sorted(path for path in runs.iterdir()))
    assert {one.folder: (one.file, len(one.rows)) for one in found} == {
        "claims": ("training/membership.json", 8),
        "filter": ("training/membership.json", 4),
        "many": ("one-run/one-run.json", 1),
        "release": ("findings.json", 2),
        "round": ("findings.json", 2),
        "rounds": ("rounds.json", 2),
        "sweep": ("sweep.json", 2),
        "trained": ("training/findings.json", 1),
    }
    assert {row.kind for row in all_rows(found)} == set(Kind)
    rows = {one.folder: one.rows for one in found}
    assert rows["filter"] == membership_rows(one_study().points[0][1])
    assert rows["release"] == disclosure_rows(synthetic(claimed_eps=9.0))
    assert rows["rounds"] == rounds_rows(rounds_audit())
    assert rows["many"] == one_run_rows(many())
    assert [row.study for row in rows["sweep"]] == ["ubuntu-irc (sigma = 1)", "ubuntu-irc (sigma = 2)"]
    assert rows["claims"][4].study == "made-up (eps = 2.0)"


def test_a_bare_claim_has_a_row_only_where_nobody_audited_the_plan(runs):
    (row,) = read_folders([runs / "trained"])[0].rows
    assert (row.verdict, row.exact, row.formal, row.heuristic) == ("not audited", None, None, None)
    assert row.claim.eps == trained().claim.eps_pld_upper
    assert row.kind is Kind.FILTERED
    assert [one.file for one in read_folders([runs / "filter"])] == ["training/membership.json"]


def test_a_round_gives_its_attacks_best_numbers_with_their_levels():
    audit = round_audit(("nonce",), canaries=5)
    (row,) = round_rows(audit)
    evidence = {one.method: one for one in audit.attacks[0].finding.evidence}
    assert row.exact.eps == evidence["exact"].eps_lower
    assert row.formal == Bound(
        evidence["variance-reduced/betting"].eps_lower, "variance-reduced/betting", 1 - audit.alpha, 2
    )
    assert row.formal.level_of_choice == pytest.approx(0.9)
    assert row.tightness.share == row.exact.eps / CLAIM.eps_pld_upper
    assert row.tightness.assurance is EXACT
    assert row.heuristic is None
    assert row.canary == "nonce user, 5 canaries"


def test_a_contradiction_after_any_round_is_told():
    audit = rounds_audit()
    assert not any(row.contradicted for row in rounds_rows(audit))
    assert {row.study for row in rounds_rows(audit)} == {"s (after 3 rounds)"}, "round 1 alone is another record"
    first = replace(audit.claims[0], eps_pld_upper=0.1)
    broken = rounds_rows(replace(audit, claims=(first, *audit.claims[1:])))
    assert all(row.contradicted and row.note.endswith("contradicted after round 1") for row in broken)


def test_missing_is_not_zero():
    promised = membership(repetitions=1)
    before, after = membership_rows(promised)
    assert before.exact is None
    assert before.formal.eps == 0.0
    assert wording.bound(before.exact) == "–"
    assert wording.bound(before.formal) == "0.000"
    assert before.tightness.assurance is FORMAL
    assert before.tightness.share == 0.0
    assert (before.kind, after.kind) == (Kind.DP_SGD, Kind.FILTERED)
    unlimited = replace(promised, claim=replace(promised.claim, eps_pld_upper=math.inf))
    assert membership_rows(unlimited)[0].tightness is None
    assert trained_rows(trained())[0].tightness is None


def test_heuristic_readings_decide_nothing_and_biased_ones_are_not_the_best():
    def one(method, assurance, eps, confidence=None):
        return Evidence(method, assurance, eps, confidence)

    evidence = (
        one("multiple_hypothesis", HEURISTIC, 9.0),
        one("onion/multiple_hypothesis", HEURISTIC, 8.0),
        one("one_run/gaussian", HEURISTIC, 7.0),
        one("gdp", HEURISTIC, 2.0),
        one("a", FORMAL, 0.5, 0.95),
        one("b", FORMAL, 0.7, 0.99),
    )
    assert largest(evidence, HEURISTIC) == Bound(2.0, "gdp", None, 1)
    assert largest(evidence, FORMAL) == Bound(0.7, "b", 0.95, 2)
    assert largest(evidence, EXACT) is None
    assert largest(evidence[:1], HEURISTIC) is None
    assert Bound(1.0, "m", 0.95, 30).level_of_choice == 0.0
    base = membership(repetitions=1)
    arm, subject = base.arms[0], base.arms[0].subjects[0]
    finding = subject.findings[0]
    loud = tuple(replace(e, eps_lower=50.0) if e.assurance is HEURISTIC else e for e in finding.evidence)
    changed = replace(arm, subjects=(replace(subject, findings=(replace(finding, evidence=loud),)),))
    (row,) = membership_rows(replace(base, arms=(changed,)))
    assert (row.heuristic.eps, row.contradicted, row.verdict) == (50.0, False, Verdict.CONSISTENT.value)


def test_repetitions_are_paid_for():
    twice = membership_rows(membership(repetitions=2))[0].formal
    assert (twice.level, twice.chosen_from) == (0.95, 4)
    assert twice.level_of_choice == pytest.approx(0.8)
    assert wording.level(twice) == "95%; 80% as the largest of 4"


def test_a_row_tells_the_attacks_view_and_keeps_the_claims():
    rows = membership_rows(one_study().points[0][1])
    assert {row.attack.split()[0]: row.attacker for row in rows} == {
        "mislabeled": "the final model", "group": "one parameter of the final model",
    }  # fmt: skip
    assert all(row.mechanism.endswith("claim holds against: every noised update") for row in rows)
    assert trained_rows(trained())[0].attacker == "–", "nobody attacked"


def test_an_exact_number_has_a_level_only_where_its_noise_was_measured():
    measured = largest((Evidence("white_box/score", EXACT, 7.858, 0.95),), EXACT)
    assert wording.exact_level(measured) == "noise measured, 95%"
    assert wording.exact_level(largest((Evidence("exact", EXACT, 1.0),), EXACT)) == ""
    assert wording.exact_level(None) == ""
    assert any("noise's interval" in line for line in wording.HOW_TO_READ)


def test_a_group_is_another_unit_and_has_no_claim():
    rows = membership_rows(one_study().points[0][1])
    groups = [row for row in rows if row.attack.startswith("group of")]
    assert {row.setting.unit for row in groups} == {"group of 9 records"}
    assert {(row.claim, row.verdict, row.contradicted, row.tightness) for row in groups} == {
        (None, "none", False, None)
    }
    assert {row.setting.unit for row in rows if row not in groups} == {"record"}


def test_synthetic_data_keep_delta_zero_apart_from_the_other_delta():
    rows = disclosure_rows(synthetic(delta=1e-5, claimed_eps=0.1))
    assert [(row.attack, row.setting.delta) for row in rows] == [
        ("secrets, feature match", 0.0), ("secrets, user match", 1e-5),
    ]  # fmt: skip
    match, guessed = rows
    assert match.claim.eps == 0.1
    assert wording.source(match.claim) == "told, not computed"
    assert match.contradicted
    assert match.formal.eps > 1
    assert guessed.claim is None
    assert len(by_setting(rows)) == 2
    unknown = disclosure_rows(synthetic(AssignmentKind.UNKNOWN, claimed_eps=0.1))[0]
    assert unknown.formal is None
    assert unknown.heuristic.eps > 1
    assert not unknown.contradicted
    assert "nothing decides" in unknown.note


def test_only_rows_of_one_setting_share_a_table_and_an_axis(runs):
    found = read_folders([runs / name for name in ("round", "claims", "filter", "release")])
    groups = by_setting(all_rows(found))
    assert [(setting.unit, str(setting.adjacency), setting.delta) for setting in groups] == [
        ("user", "add/remove", 1e-5), ("record", "add/remove", 1e-5), ("group of 9 records", "add/remove", 1e-5),
        ("user", "add/remove", 0.0),
    ]  # fmt: skip
    figure = claims_and_bounds(all_rows(found))
    assert [axes.get_title(loc="left") for axes in figure.axes] == [wording.heading(setting) for setting in groups]
    for axes, rows in zip(figure.axes, groups.values(), strict=True):
        drawn = {str(line.get_label()).partition(" ")[0]: line for line in axes.get_lines()}
        shown = {name: list(line.get_xdata()) for name, line in drawn.items()}
        assert shown.get("claim", []) == [row.claim.eps for row in rows if row.claim]
        assert shown.get("exact,", []) == [row.exact.eps for row in rows if row.exact]
        assert shown.get("formal", []) == [row.formal.eps for row in rows if row.formal]
        assert list(drawn["formal"].get_ydata()) == [y for y, row in enumerate(rows) if row.formal]


def test_the_figure_says_what_is_missing_and_what_is_left_out():
    bare = trained_rows(trained())[0]
    figure = claims_and_bounds([bare] * (MOST_ROWS + 3))
    assert "nothing proven: not measured" in [text.get_text() for text in figure.axes[0].texts]
    assert any("3 more rows in the table" in text.get_text() for text in figure.texts)
    assert len(figure.axes[0].get_yticklabels()) == MOST_ROWS


def test_long_names_leave_room_for_numbers():
    bare = replace(trained_rows(trained())[0], study="word " * 100)
    figure = claims_and_bounds([bare])
    assert max(map(len, figure.axes[0].get_yticklabels()[0].get_text().splitlines())) <= 72
    assert png(figure)


def test_files(runs, tmp_path):
    found = read_folders(sorted(path for path in runs.iterdir()))
    text = publish(found, tmp_path).read_text()
    for words in (
        "heuristic",
        "–",
        "told, not computed",
        "not audited",
        "label-only rates bound no epsilon",
        "leaks, whatever was claimed: disclosures, secrets, feature match",
    ):
        assert words in text
    assert text.count("<h2>unit: ") == len(by_setting(all_rows(found)))
    assert "<script" not in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert str(runs) not in text
    assert 'role="alert"' not in text
    assert (tmp_path / "figures" / "joined.png").stat().st_size > 10_000
    document = json.loads((tmp_path / "joined.json").read_text(), parse_constant=pytest.fail)
    assert document == json.loads(json.dumps(to_json(found)))
    rows = [row for one in document["settings"] for row in one["rows"]]
    assert len(rows) == len(all_rows(found))
    assert {row["exact"] is None for row in rows} == {True, False}


def test_a_contradicted_claim_is_said_first(tmp_path):
    bad = Audited("made-up", (), (({}, membership(9.0, repetitions=1)),))
    kept(tmp_path / "run" / "membership.json", audited_json(bad))
    text = publish(read_folders([tmp_path / "run"]), tmp_path / "out").read_text()
    assert 'role="alert">CLAIM CONTRADICTED in 2 of 2 rows: made-up, DP-SGD, mislabeled' in text


def damaged(document, path, value):
    *way, last = path
    node = document
    for step in way:
        node = node[step]
    node[last] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("format",), "coalmine membership audit 2", "membership audit 2' is not known here"),
        (("format",), None, "None is not known here"),
        (("claim", "adjacency"), "sideways", "/claim/adjacency"),
        (("claim", "eps_pld_upper"), "much", "/claim/eps_pld_upper"),
        (("arms",), None, "/arms"),
        (("verdict",), "claim contradicted", "this version does not know"),
        (("surprise",), 1, "this version does not know"),
        (("format",), [1], "[1] is not known here"),
        (("format",), {"a": 1}, "{'a': 1} is not known here"),
        (("study",), "\ud800", "/study: the record is damaged: half a character"),
        (("claim", "eps_pld_upper"), -1.0, "/claim/eps_pld_upper: the record is damaged: -1 is impossible"),
        (("claim", "eps_pld_lower"), 10**400, "/claim/eps_pld_lower"),
        (("claim", "delta"), 1.0, "/claim/delta: the record is damaged: 1 is impossible (needs a probability in"),
        (("claim", "q"), 0.0, "/claim/q"),
        (("claim", "q"), 1.5, "/claim/q"),
        (("claim", "sigma"), 0.0, "/claim/sigma"),
        (("claim", "rounds"), 0, "/claim/rounds"),
        (("alpha",), 1.0, "/alpha"),
        (("models",), 0, "/models"),
        (("arms",), [], "/arms: the record is damaged: nothing is there"),
        (("arms", 0, "subjects", 0, "findings", 0, "evidence", 0, "eps_lower"), -0.1, "/evidence/0/eps_lower"),
        (("arms", 0, "subjects", 0, "findings", 0, "evidence", 0, "confidence"), 1.0, "/evidence/0/confidence"),
        (("not_finite",), {"/claim/delta": "nan"}, "/claim/delta: the record is damaged: 'nan' is impossible"),
        (("not_finite",), {"/arms/0/subjects/0/findings/0/evidence/0/eps_lower": "inf"}, "'inf' is impossible"),
    ],
)
def test_damaged_records_and_other_versions_are_refused(tmp_path, path, value, said):
    (tmp_path / "membership.json").write_text(json.dumps(damaged(audit_json(membership()), path, value)))
    with pytest.raises(StorageError, match=r"membership\.json") as refused:
        read_folders([tmp_path])
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("points",), [], "no points"),
        (("points", 0), {"values": {}}, "/points/0"),
        (("points", 1, "findings", "format"), "coalmine findings 0", "/points/1"),
    ],
)
def test_damaged_sweeps_are_refused(tmp_path, path, value, said):
    kept(tmp_path / "membership.json", damaged(audited_json(swept()), path, value))
    with pytest.raises(StorageError, match=said):
        read_folders([tmp_path])


def test_records_whose_parts_do_not_fit_are_refused(tmp_path):
    document = damaged(rounds.to_json(rounds_audit()), ("paths", "ordinary", 0, "prefixes"), [])
    kept(tmp_path / "rounds.json", document)
    with pytest.raises(StorageError, match="do not fit"):
        read_folders([tmp_path])
    odd = round_audit(("nonce",), canaries=1)
    attack = replace(odd.attacks[0], finding=replace(odd.attacks[0].finding, subject="unheard-of"))
    kept(tmp_path / "rounds.json", record.to_json(replace(odd, attacks=(attack,))))
    with pytest.raises(StorageError, match="does not know the attack 'unheard-of'"):
        read_folders([tmp_path])


def test_folders_that_cannot_be_joined_are_refused(runs, tmp_path):
    for folders, said in (
        ([], "nothing to join"),
        ([tmp_path / "none"], "no such folder"),
        ([tmp_path], "no run has left a record here"),
        ([runs / "filter", runs / "filter" / "training"], "is also in"),
        ([runs / "round", runs / "round"], "also in"),
    ):
        with pytest.raises(StudyError, match=said):
            read_folders(folders)


@pytest.fixture
def coalmine(monkeypatch, capsys):
    def call(*words):
        monkeypatch.setattr("sys.argv", ["coalmine", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code or 0, *capsys.readouterr()

    return call


def test_the_command_joins_and_says_where(coalmine, runs, tmp_path):
    out = tmp_path / "joined"
    code, said, err = coalmine("report", runs / "round", runs / "filter", "--out", out, "--json")
    assert code == 0
    assert json.loads(said) == json.loads((out / "joined.json").read_text())
    assert f"report: {out / 'joined.html'}" in err
    code, said, _ = coalmine("report", *sorted(runs.iterdir()), "--out", out)
    assert code == 0
    assert "δ = 0" in said
    assert "…" not in said, "80 columns are enough"
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.parametrize("content", [None, "{", "[]", '{"format": "coalmine findings 2"}', '{"format": NaN}'])
def test_the_command_refuses_with_code_2_and_writes_nothing(coalmine, tmp_path, content):
    folder, out = tmp_path / "run", tmp_path / "joined"
    folder.mkdir()
    if content is not None:
        (folder / "findings.json").write_text(content)
    code, said, err = coalmine("report", folder, "--out", out)
    assert (code, said) == (2, "")
    assert err.startswith("coalmine: ")
    assert err.count("\n") == 1
    assert str(folder) in err
    assert not out.exists()


@pytest.mark.parametrize("deep", [500, 100_000])
def test_a_record_without_end_is_damaged(tmp_path, deep):
    text = '{"format": "coalmine training 1", "facts": ' + "[" * deep + "]" * deep + "}"
    (tmp_path / "findings.json").write_text(text)
    with pytest.raises(StorageError, match=r"findings\.json.* damaged"):
        read_folders([tmp_path])


@pytest.mark.parametrize("name", ["[/b]x", "[bold]x", "$\\frac$"])
def test_a_name_is_shown_as_it_is(tmp_path, monkeypatch, capsys, name):
    kept(tmp_path / "run" / "findings.json", disclosure_record.to_json(replace(synthetic(claimed_eps=0.1), name=name)))
    monkeypatch.setattr("sys.argv", ["coalmine", "report", str(tmp_path / "run"), "--out", str(tmp_path / "[b]out")])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    shown = capsys.readouterr()
    assert not ended.value.code
    assert f"{name}, synthetic data, secrets" in " ".join(shown.out.split())
    assert "[b]out" in shown.err


@pytest.mark.parametrize(("eps", "said"), [(1.23456, "1.234"), (1e308, f"{1e308:.3f}"), (math.inf, "∞")])
def test_the_largest_numbers_are_rounded_too(eps, said):
    assert down(eps) == said
