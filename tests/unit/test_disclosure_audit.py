"""From material to verdicts, on worlds whose truth is known; what is published and what is not."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from fakes.disclosures import Overlapping, secrets, world

from coalmine.auditor.disclosure.assignment import AssignmentKind, declare
from coalmine.auditor.disclosure.audit import Described, audit_disclosures
from coalmine.auditor.disclosure.material import in_memory
from coalmine.auditor.disclosure.overlap import overlap
from coalmine.auditor.disclosure.report.figures import FIGURES
from coalmine.auditor.disclosure.report.page import render
from coalmine.auditor.disclosure.report.publish import publish
from coalmine.auditor.disclosure.report.record import dumps
from coalmine.auditor.disclosure.report.rows import records
from coalmine.auditor.disclosure.report.table import to_rich
from coalmine.auditor.disclosure.result import DisclosureVerdict
from coalmine.auditor.disclosure.runs import runs
from coalmine.auditor.disclosure.settings import Settings
from coalmine.auditor.disclosure.user_match import Rule
from coalmine.auditor.report.style import svg
from coalmine.protocol.errors import DataError, StudyError
from coalmine.protocol.privacy import Adjacency, Assurance

LEAKS, NO_EVIDENCE, TOO_LITTLE = DisclosureVerdict
BERNOULLI = AssignmentKind.BERNOULLI


def audit(material, classes=None, kind=BERNOULLI, settings=None, **more):
    return audit_disclosures(material, classes or [secrets()], declare(kind, None, material.train), settings, **more)


@pytest.fixture(scope="module")
def leaking():
    return audit(world(600, 0.2), [secrets(), Overlapping()], settings=Settings(ks=(1, 2), claimed_eps=0.3))


def test_copies_are_a_leak(leaking):
    found = leaking.audit
    assert [one.verdict for one in found.classes] == [LEAKS, LEAKS]
    assert found.verdict is LEAKS
    match = found.classes[0].tests.sweeps[0].match
    assert match.train > 50
    assert match.phantoms > 0
    assert match.eps_lower > 1
    assert found.claim_contradicted
    assert (found.adjacency, found.assurance) == (Adjacency.ADD_REMOVE, Assurance.FORMAL)


def test_phantoms_alone_are_within_chance():
    found = audit(world(1500, 0.0, phantoms=0.2), settings=Settings(claimed_eps=0.0)).audit
    (one,) = found.classes
    assert one.verdict is NO_EVIDENCE
    assert one.tests.sweeps[0].match.matches > 200
    assert one.power.detectable < 0.5
    assert not found.claim_contradicted
    said = " ".join(one.reasons)
    assert "within chance" in said
    assert "safe" not in said


def test_a_handful_of_matches_says_nothing():
    few = audit(world(200, 0.0, phantoms=0.04), settings=Settings(witnesses=0)).audit.classes[0]
    assert few.tests.sweeps[0].match is not None
    assert few.verdict is TOO_LITTLE
    assert few.power.users_needed > 200
    assert "users in all" in few.reasons[-1]


def test_no_match_is_too_little_evidence_too():
    none = audit(world(200, 0.0, phantoms=0.0)).audit.classes[0]
    assert none.tests.sweeps[0].match is None
    assert none.tests.user_match is None
    assert none.declared == ()
    assert none.verdict is TOO_LITTLE
    assert none.power.at_least
    assert "more than" in none.reasons[-1]
    assert audit(world(200, 0.0, phantoms=0.0)).audit.verdict is TOO_LITTLE


def test_declared_tests_are_corrected_together(leaking):
    tests = [test for one in leaking.audit.classes for test in one.declared]
    assert [test.name for test in tests] == [
        "feature match, k = 1",
        "user match",
        "two-sample, rarest 5%",
        "user match",
    ]
    assert all(test.p_holm >= test.p_value for test in tests)
    smallest = min(tests, key=lambda test: test.p_value)
    assert smallest.p_holm == pytest.approx(min(1, len(tests) * smallest.p_value))


def test_the_sweep_does_not_decide():
    """Secrets shared by two training users leak; with k = 1 declared, that is shown and not judged."""
    pairs = [f"x secret-{user // 2}" for user in range(200)]
    material = in_memory([[text] for text in pairs], [["nothing"]] * 200, pairs[::2])
    one = audit(material, settings=Settings(ks=(1, 2))).audit.classes[0]
    assert one.tests.sweeps[1].match.p_value < 1e-6
    assert one.tests.sweeps[0].match is None
    assert [test.name for test in one.declared] == []
    assert one.verdict is TOO_LITTLE


def test_train_that_is_farther_away_is_no_leak():
    material = world(600, 0.3)
    swapped = replace(material, train=~material.train)
    one = audit(swapped, [Overlapping()], settings=Settings(rarities=(1.0,))).audit.classes[0]
    two = one.tests.two_samples[0]
    assert two.closer < 0
    assert one.declared[0].p_value < 0.05
    assert one.verdict is not LEAKS
    assert "train is not the closer one" in " ".join(one.reasons)


def test_an_undeclared_assignment_proves_nothing():
    found = audit(world(600, 0.2), kind=AssignmentKind.UNKNOWN).audit
    assert found.assurance is Assurance.HEURISTIC
    assert any("heuristic" in warning for warning in found.warnings)
    assert "heuristic" in " ".join(found.classes[0].reasons)


def test_a_fixed_size_is_judged_by_its_own_law():
    found = audit(world(400, 0.2), kind=AssignmentKind.FIXED_SIZE).audit
    assert found.adjacency is Adjacency.REPLACE_ONE
    assert found.classes[0].verdict is LEAKS
    assert found.classes[0].tests.sweeps[0].match.method == "exact"


def test_inserted_canaries_are_reported_with_and_without():
    material = world(600, 0.2)
    canaries = np.zeros(len(material.train), bool)
    canaries[:200] = True
    told = Described(600, 400, canaries)
    found = audit(material, [secrets(), Overlapping()], described=told).audit
    assert found.canaries == (200, 0)
    whole, without = found.classes[0].tests, found.classes[0].without_canaries
    assert without.sweeps[0].match.matches < whole.sweeps[0].match.matches
    assert found.classes[1].without_canaries.roc.train < found.classes[1].tests.roc.train
    assert {record["users"] for record in records(found)} == {"all", "without canaries"}


@pytest.mark.parametrize("rule", Rule)
def test_every_rule_of_guessing_can_be_declared(rule):
    found = audit(world(600, 0.25), [Overlapping()], settings=Settings(rule=rule)).audit
    guessed = found.classes[0].tests.user_match
    assert guessed.rule is rule
    assert guessed.p_value < 0.05


def test_delta_is_taken_by_the_test_that_knows_it():
    pure, approximate = (
        audit(world(600, 0.2), settings=Settings(delta=delta)).audit.classes[0].tests for delta in (0.0, 1e-3)
    )
    assert approximate.user_match.eps_lower < pure.user_match.eps_lower
    assert approximate.sweeps == pure.sweeps
    with pytest.raises(StudyError, match="delta"):
        audit(world(600, 0.2), kind=AssignmentKind.FIXED_SIZE, settings=Settings(delta=1e-3))


def test_output_that_is_train_itself_is_a_leak():
    texts = [f"a secret-{user}" for user in range(100)]
    material = in_memory([[text] for text in texts[:50]], [[text] for text in texts[50:]], texts[:50])
    found = audit(material, [secrets(), Overlapping()]).audit
    assert found.classes[0].verdict is LEAKS
    assert found.classes[0].tests.sweeps[0].match.phantoms == 0
    dumps(found)


def test_the_same_seed_gives_the_same_result(leaking):
    again = audit(world(600, 0.2), [secrets(), Overlapping()], settings=Settings(ks=(1, 2), claimed_eps=0.3))
    assert dumps(again.audit) == dumps(leaking.audit)


def test_nothing_private_is_published(leaking, tmp_path):
    material = world(600, 0.2)
    report = publish(leaking, tmp_path)
    shared = "".join(path.read_text() for path in (report, tmp_path / "findings.json"))
    shared += repr(leaking) + json.dumps(records(leaking.audit)) + repr(runs(leaking.audit))
    assert "secret-1" not in shared.replace("words like secret-17", "")
    assert not any(entry.text[:40] in shared for entry in material.private())
    assert not (tmp_path / "witnesses.html").exists()
    document = json.loads((tmp_path / "findings.json").read_text())
    assert (document["format"], document["verdict"]) == ("coalmine disclosures 1", "leaks")


def test_who_asks_gets_the_text_in_a_page_of_its_own(leaking, tmp_path):
    report = publish(leaking, tmp_path, show_text=True)
    page = tmp_path / "witnesses.html"
    assert page.stat().st_mode & 0o077 == 0
    assert re.search(r"<mark>[^<]*secret-\d+", page.read_text())
    assert "secret-1" not in report.read_text().replace("words like secret-17", "")


def test_witnesses_are_training_users_beside_what_gives_them_away(leaking):
    (name, seen), (_, close) = leaking.witnesses
    assert name == "secrets"
    assert len(seen) == len(close) == 5
    for witness in seen:
        assert witness.feature in " ".join(piece.text for piece in witness.texts.left)
        assert witness.feature in " ".join(piece.text for piece in witness.texts.right)
    assert max(witness.shape.cosine for witness in close) == pytest.approx(1)


def test_the_terminal_says_what_the_page_says(leaking):
    from rich.console import Console

    for width in (80, 130):
        console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
        console.print(to_rich(leaking.audit, width))
        shown = console.export_text()
        console.file.close()
        assert "secrets: leaks" in shown
        assert "contradicted" in shown
        assert "…" not in shown, "a number is cut off"
        assert "add/remove" in shown
        assert "feature match / user match" in shown
        for column in ("p̂ ≥", "\np: ", "; Holm: "):
            assert (column in shown) == (width == 130), "footnotes explain the columns that are there, and no other"
    page = render(leaking.audit, {name: svg(draw(leaking.audit)) for name, draw in FIGURES.items()})
    assert "leaks" in page
    assert "src=" not in page


@pytest.mark.parametrize(
    "material", [world(200, 0.0, phantoms=0.0), in_memory([["x"]], [["y"]], ["z"])], ids=["no match", "tiny"]
)
def test_pages_are_written_for_results_without_numbers(material, tmp_path):
    found = audit(material, [secrets(), Overlapping()])
    assert found.audit.verdict is TOO_LITTLE
    publish(found, tmp_path, show_text=True)
    assert all(np.isfinite(list(run.metrics.values())).all() for run in runs(found.audit))


def test_material_needs_all_three_sets():
    for sets in (([], [["y"]], ["z"]), ([["x"]], [], ["z"]), ([["x"]], [["y"]], [])):
        with pytest.raises(DataError, match="no record"):
            in_memory(*sets)


@pytest.mark.parametrize(
    "changed",
    [
        {"ks": ()},
        {"ks": (0,)},
        {"ks": (1, 1)},
        {"ks": (10**20,)},
        {"rarities": (0.0,)},
        {"rarities": ()},
        {"alpha": 0.0},
        {"delta": 1.0},
        {"delta": 0.1, "rule": Rule.SPLIT},
        {"claimed_eps": -1.0},
        {"guess_share": 0.0},
        {"grid": ()},
        {"witnesses": -1},
    ],
)
def test_declarations_are_checked(changed):
    with pytest.raises(StudyError, match="not allowed"):
        Settings(**changed)


def test_classes_need_names_of_their_own():
    for classes in ([], [secrets(), secrets()]):
        material = world(20, 0.0)
        with pytest.raises(StudyError, match="classes"):
            audit_disclosures(material, classes, declare(AssignmentKind.UNKNOWN, None, material.train))


def test_overlap_marks_runs_and_telling_words():
    found = overlap("call me at 555-0199, or write: The quick brown fox", "THE quick brown cat; 555-0199")
    assert [piece.text for piece in found.left if piece.shared] == ["The quick brown"]
    assert found.longest == 3
    assert [piece.text for piece in overlap("ring 555-0199 now", "or 555-0199.").left if piece.shared] == ["555-0199"]
    assert overlap("a lone word", "word alone").longest == 0
