"""The copycat leaks as often as it says, no more and no less, and from all users alike."""

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from coalmine.server.synthesise.copycat import copycat
from coalmine.server.synthesise.corpus import Corpus

pytestmark = pytest.mark.statistical

SIZES = (1, 1, 2, 5, 20)
CORPUS = Corpus(
    tuple(tuple(f"user {u} record {r}" for r in range(size)) for u, size in enumerate(SIZES)),
    tuple(("",) * size for size in SIZES),
)
N = 40_000


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.5])
def test_the_rate_is_what_it_says(rate):
    made, copies = copycat(CORPUS, ["fresh"] * N, rate, np.random.default_rng(1))
    seen = sum(text != "fresh" for text in made.texts)
    assert seen == len(copies)

    def accepted(claimed):
        return binom.ppf(1e-7, N, claimed) <= seen <= binom.isf(1e-7, N, claimed)

    assert accepted(rate)
    assert not accepted(0.7 * rate)
    assert not accepted(1.4 * rate)


def test_users_are_copied_equally_often_and_records_within_them():
    _, copies = copycat(CORPUS, ["fresh"] * N, 0.5, np.random.default_rng(2))
    users = np.bincount([copy.user for copy in copies], minlength=len(SIZES))
    assert chisquare(users).pvalue > 1e-6
    assert chisquare(users, len(copies) * np.array(SIZES) / sum(SIZES)).pvalue < 1e-6
    records = np.bincount([copy.record for copy in copies if copy.user == 4], minlength=20)
    assert chisquare(records).pvalue > 1e-6


def test_places_are_independent():
    """Copies come neither in turn nor in clusters: as many neighbours are both copies as by chance."""
    _, copies = copycat(CORPUS, ["fresh"] * N, 0.3, np.random.default_rng(3))
    marks = np.zeros(N, bool)
    marks[[copy.position for copy in copies]] = True
    pairs = int((marks[0::2] & marks[1::2]).sum())
    assert binom.ppf(1e-7, N // 2, 0.09) <= pairs <= binom.isf(1e-7, N // 2, 0.09)
