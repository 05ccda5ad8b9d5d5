"""The sentence splitter."""

import pytest

from coalmine.clients.data.sentences import sentences
from coalmine.clients.data.sotu import era


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is a first one. It is a second one.", ["It is a first one.", "It is a second one."]),
        ("Is it so bad? Yes it is indeed! We go on now.", ["Is it so bad?", "Yes it is indeed!", "We go on now."]),
        ("I thank Mr. Speaker and Gen. Scott today.", ["I thank Mr. Speaker and Gen. Scott today."]),
        ("In the U.S. Senate we met. So we did agree.", ["In the U.S. Senate we met.", "So we did agree."]),
        ("They live in the U.S. They like it there.", ["They live in the U.S.", "They like it there."]),
        ("Of John Q. Adams we speak here.", ["Of John Q. Adams we speak here."]),
        (
            "It cost $3.50 per 1.5 tons. That is 2,000.00 more.",
            ["It cost $3.50 per 1.5 tons.", "That is 2,000.00 more."],
        ),
        (
            "See No. 5 of the list. The answer was No. We left them there.",
            ["See No. 5 of the list.", "The answer was No.", "We left them there."],
        ),
        ("1. The first of the points.", ["1. The first of the points."]),
        ("We did it in 1865. The war was over.", ["We did it in 1865.", "The war was over."]),
        (
            'He said: "We shall prevail now." The crowd rose up.',
            ['He said: "We shall prevail now."', "The crowd rose up."],
        ),
        ("We owe (approx. two) dollars to them.", ["We owe (approx. two) dollars to them."]),
        ("We wait... And then we go on.", ["And then we go on."]),
        ("Thank you. [Applause] We begin with the facts.", ["We begin with the facts."]),
        (
            "A heading of four words\n\nThen comes   the\ttext itself.",
            ["A heading of four words", "Then comes the text itself."],
        ),
        ("God bless you all. Thank you.", ["God bless you all."]),
        ("", []),
    ],
)
def test_sentences(text, expected):
    assert sentences(text) == expected


def test_the_least_number_of_words_is_a_choice():
    assert sentences("Thank you. Good night.", min_words=2) == ["Thank you.", "Good night."]


def test_half_centuries():
    assert [era(year) for year in (1790, 1849, 1850, 1999, 2000, 2026)] == [
        "1790-1849", "1790-1849", "1850-1899", "1950-1999", "2000-today", "2000-today",
    ]  # fmt: skip
