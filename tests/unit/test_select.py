"""Selection: the best of each label by noisy count, ties to the lowest index, defined for every histogram."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coalmine.protocol.errors import StudyError
from coalmine.server.select import KEPT, Survivors, select, synthetic_output

NONE = np.empty(0, np.int64)


def plainly(histogram, labels, probes, share):
    """Label by label, with sorted()."""
    kept = []
    for label in set(labels):
        mine = [i for i in range(len(labels)) if labels[i] == label and i not in set(probes)]
        best = sorted(mine, key=lambda i: (-histogram[i], i))
        kept += best[: math.ceil(Fraction(str(share)) * len(mine))]
    return sorted(kept)


@st.composite
def banks(draw):
    size = draw(st.integers(1, 60))
    labels = draw(st.lists(st.sampled_from(["", "a", "b b"]), min_size=size, max_size=size))
    counts = draw(
        st.lists(st.integers(-3, 3) | st.floats(-1e300, 1e300, allow_subnormal=False), min_size=size, max_size=size)
    )
    probes = draw(st.lists(st.integers(0, size - 1), unique=True, max_size=size - 1))
    return np.array(counts, float), labels, np.array(probes, np.int64)


@given(banks(), st.sampled_from([0.05, 0.1, 0.35, 1.0]), st.sampled_from([0.0, 1.0, 2.5]))
def test_it_is_the_plain_selection_whatever_the_counts(bank, share, threshold):
    histogram, labels, probes = bank
    survivors = select(histogram, labels, probes, share=share, threshold=threshold)
    assert survivors.candidates.tolist() == plainly(histogram, labels, probes, share)
    assert survivors.probes.tolist() == sorted(probes)
    np.testing.assert_array_equal(survivors.weights, np.maximum(histogram[survivors.candidates] - threshold, 0))
    assert math.isclose(survivors.shares.sum(), 1, rel_tol=1e-12)
    assert (survivors.shares >= 0).all()
    assert set(synthetic_output(survivors, 20, np.random.default_rng(0))) <= set(survivors.candidates)


@pytest.mark.parametrize(("size", "kept"), [(1, 1), (20, 1), (21, 2), (140, 7), (8192, 410)])
def test_the_share_is_rounded_up_without_floating_point(size, kept):
    assert len(select(np.zeros(size), [""] * size, NONE).candidates) == kept
    assert KEPT == 0.05


@pytest.mark.parametrize("level", [0.0, -7.0, 3.0])
def test_equal_counts_keep_the_lowest_indices(level):
    survivors = select(np.full(40, level), ["b", "a"] * 20, np.array([0, 1]), share=0.1)
    assert survivors.candidates.tolist() == [2, 3, 4, 5]
    np.testing.assert_array_equal(survivors.shares, [0.25] * 4)


def test_without_a_positive_weight_the_output_is_drawn_evenly():
    survivors = select(np.array([-1.0, -2.0, -3.0, -4.0]), [""] * 4, NONE, share=0.5)
    assert survivors.candidates.tolist() == [0, 1]
    drawn = synthetic_output(survivors, 4000, np.random.default_rng(1))
    assert abs((drawn == 0).sum() - 2000) < 6 * math.sqrt(1000)


def test_a_probe_never_competes_and_never_comes_out():
    survivors = select(np.array([100.0, 1.0, 2.0, 99.0]), [""] * 4, np.array([3, 0]), share=0.5)
    assert survivors.candidates.tolist() == [2]
    assert survivors.probes.tolist() == [0, 3]
    assert set(synthetic_output(survivors, 50, np.random.default_rng(0))) == {2}


def test_huge_counts_do_not_overflow():
    survivors = Survivors(np.arange(2), np.array([1e308, 1e308]), NONE)
    np.testing.assert_array_equal(survivors.shares, [0.5, 0.5])
    assert len(synthetic_output(survivors, 0, np.random.default_rng(0))) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"share": 0.0}, "needs a share"),
        ({"share": 1.5}, "needs a share"),
        ({"share": math.nan}, "needs a share"),
        ({"threshold": -1.0}, "needs a count >= 0"),
        ({"threshold": math.inf}, "needs a count >= 0"),
        ({"histogram": np.zeros(2)}, "over 3 candidates"),
        ({"histogram": np.array([0, np.nan, 0])}, "not a finite number"),
        ({"histogram": np.array([0, np.inf, 0])}, "not a finite number"),
        ({"probes": np.arange(3)}, "every candidate is a probe"),
    ],
)
def test_what_cannot_be_selected_is_refused(arguments, message):
    given = {"histogram": np.zeros(3), "labels": ["", "", ""], "probes": NONE} | arguments
    with pytest.raises(StudyError, match=message) as caught:
        select(given.pop("histogram"), given.pop("labels"), given.pop("probes"), **given)
    assert caught.value.exit_code == 2
