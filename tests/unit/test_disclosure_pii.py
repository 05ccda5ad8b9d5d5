"""Personal details: one canonical form, a filter that never hides one, and texts that are read once. No model here."""

import re

import pytest
from fakes.material import Held
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import naive_holders

from coalmine.auditor.disclosure import pii
from coalmine.auditor.disclosure.pii import Mentions, Pii, canonical
from coalmine.auditor.disclosure.pii_detector import Detail

NAME = re.compile(r"[A-Z][a-zß]+(?:\s+[A-Z][a-zß]+)*")
NUMBER = re.compile(r"\d[\d .-]{4,}\d")
PIECES = (
    "Ann",
    "Bo",
    "Groß",
    "GROSS",
    "ann",
    " ",
    "  ",
    "\n",
    "\u00a0",
    ".",
    "'s",
    "(",
    ") ",
    "555 1234",
    "555-12.34",
    "7",
)
TEXT = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


class Capitals:
    """Takes words with a capital for names, and runs of digits for telephone numbers."""

    notes = ("a fake",)

    def __init__(self):
        self.read = []

    def detect(self, texts):
        self.read.extend(texts)
        return [
            tuple(Detail("PERSON", *found.span()) for found in NAME.finditer(text))
            + tuple(Detail("PHONE_NUMBER", *found.span()) for found in NUMBER.finditer(text))
            for text in texts
        ]


def details(text):
    return {canonical(text, detail) for detail in Capitals().detect([text])[0]} - {""}


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("  Jane\n DOE,", "PERSON", "jane doe"),
        ("Jane Doe's", "PERSON", "jane doe"),
        ("Jane Doe’s.", "PERSON", "jane doe"),
        ("(jane@x.org)", "EMAIL_ADDRESS", "jane@x.org"),
        ("+1 (212) 555-1234", "PHONE_NUMBER", "12125551234"),
        ("4454 7945-1139 0933", "CREDIT_CARD", "4454794511390933"),
        ("10.0.0.12", "IP_ADDRESS", "10.0.0.12"),
        ("STRASSE", "LOCATION", "strasse"),
        ("Straße", "LOCATION", "strasse"),
        ("X.", "ORGANIZATION", ""),
        ("--", "PERSON", ""),
    ],
)
def test_canonical_form(text, kind, expected):
    assert canonical(text, Detail(kind, 0, len(text))) == expected


@settings(max_examples=400)
@given(TEXT | st.text(max_size=30), st.data())
def test_the_filter_lets_every_text_with_a_detail_pass(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    kind = data.draw(st.sampled_from(["PERSON", "PHONE_NUMBER"]))
    detail = canonical(text, Detail(kind, start, end))
    if detail:
        assert Mentions([detail, "something else"]).possible_in(text)


def test_the_filter_stops_texts_without_a_detail():
    mentions = Mentions(["jane doe", "12125551234", "bo"])
    for text in ("", "Jane is here", "DOE JANE", "212 555 1234", "b o"):
        assert not mentions.possible_in(text)
    for text in ("JANE\tDOE", "1 212 5551234", "elbow"):
        assert mentions.possible_in(text)
    assert not Mentions([]).possible_in("anything")


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 4), TEXT), max_size=12),
    st.lists(TEXT, max_size=8),
    st.sampled_from([1, 3, 512]),
    st.sampled_from([0, 2, 500_000]),
)
def test_equals_counting_without_filter_chunks_or_memory(records, outputs, chunk, remembered):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pii, "_CHUNK_TEXTS", chunk)
        patch.setattr(pii, "_REMEMBERED", remembered)
        of_class = Pii(Capitals())
        for _ in range(2):  # the second time from memory
            for matches in of_class.matches(Held(records, outputs), [1, 2, 3]):
                assert {
                    feature: (tuple(users), first)
                    for feature, users, first in zip(
                        matches.features, matches.holders.tolist(), matches.synthetic.tolist(), strict=True
                    )
                } == naive_holders.held_by(records, outputs, details, matches.k)


def test_equal_texts_are_read_once_and_hopeless_ones_never():
    detector = Capitals()
    records = [(0, "Ann Lee called"), (1, "nothing of interest"), (2, "Ann Lee called"), (0, "Zoe"), (1, "")]
    of_class = Pii(detector)
    outputs = ["I met Ann Lee", "I met Ann Lee"]
    of_class.matches(Held(records, outputs), [1])
    assert sorted(detector.read) == ["Ann Lee called", "I met Ann Lee"]
    of_class.matches(Held(records, outputs), [1])
    assert len(detector.read) == 2


def test_ten_megabytes_in_one_cell():
    long = "word " * 1_000_000 + "Ann Lee " + "word " * 1_000_000 + "x" * 50_000
    detector = Capitals()
    one, two = Pii(detector).matches(Held([(0, long), (1, "Bo"), (1, "Ann Lee")], ["Ann Lee", long]), [1, 2])
    assert list(two.features) == ["ann lee"]
    assert len(one.features) == 0
    assert max(map(len, detector.read)) <= 20_000
    assert max(len(word) for text in detector.read for word in text.split()) <= 1000


@given(st.text(alphabet="ab \n\u2003", max_size=60))
def test_pieces_lose_nothing_but_white_space(text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pii, "_PIECE", 7)
        pieces = pii._pieces(text)
    assert all(0 < len(piece) <= 7 for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_notes_come_from_the_detector():
    assert Pii(Capitals()).notes == ("a fake",)
