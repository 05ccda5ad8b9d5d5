"""Utility: bounded, ordered as it should be, the same under the same seeds, and compared at equal sizes."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coalmine.auditor.utility.downstream import Labelled, accuracy, majority_accuracy
from coalmine.auditor.utility.mauve_score import mauve_score
from coalmine.auditor.utility.measure import yardstick
from coalmine.auditor.utility.result import Repeated, utility_metrics
from coalmine.protocol.errors import DataError

DIMENSION = 12
CENTRES = {label: np.random.default_rng(number).normal(size=DIMENSION) for number, label in enumerate("abc")}


def texts(size, seed, blur=1.0, shift=0.0, labels="abc"):
    """Embedded texts around their label's centre; ``shift`` moves them away from it, ``blur`` hides it."""
    rng = np.random.default_rng(seed)
    chosen = tuple(labels[n % len(labels)] for n in range(size))
    centres = np.array([CENTRES[label] for label in chosen])
    features = centres + blur * rng.normal(size=(size, DIMENSION)) + shift * rng.normal(size=DIMENSION)
    return Labelled((features / np.linalg.norm(features, axis=1, keepdims=True)).astype(np.float32), chosen)


REAL, HELD_OUT, ZERO = texts(400, 1), texts(300, 2), texts(500, 3, blur=3.0, shift=3.0)


@pytest.fixture(scope="module")
def measured():
    stick = yardstick(REAL, HELD_OUT, ZERO, outputs=250, seed=5, repeats=3)
    return stick, stick.measure(1, texts(250, 4, blur=1.5, shift=0.7))


def test_synthetic_texts_lie_between_floor_and_ceiling(measured):
    stick, found = measured
    against = stick.references
    assert (against.size, against.buckets) == (250, 25)
    assert against.mauve_floor.mean < found.mauve.mean < against.mauve_ceiling.mean
    assert against.majority == pytest.approx(1 / 3)
    assert against.majority < against.accuracy_floor.mean < found.accuracy.mean < against.accuracy_real.mean
    for value in (found.mauve, found.accuracy, against.mauve_ceiling, against.accuracy_real):
        assert len(value.values) == 3
        assert value.spread > 0


def test_the_same_seeds_give_the_same_numbers(measured):
    stick, found = measured
    again = yardstick(REAL, HELD_OUT, ZERO, outputs=250, seed=5, repeats=3)
    assert again.references == stick.references
    assert again.measure(1, texts(250, 4, blur=1.5, shift=0.7)) == found
    other = yardstick(REAL, HELD_OUT, ZERO, outputs=250, seed=6, repeats=3)
    assert other.references.mauve_ceiling != stick.references.mauve_ceiling


def test_the_real_texts_themselves_reach_the_ceiling(measured):
    stick, _ = measured
    same = stick.measure(1, REAL)
    assert same.mauve == stick.references.mauve_ceiling
    assert same.accuracy == stick.references.accuracy_real


def test_metrics_are_named_and_finite(measured):
    metrics = utility_metrics(measured[1])
    assert metrics["utility/mauve"] == measured[1].mauve.mean
    assert {"utility/mauve_spread", "utility/accuracy_floor", "utility/accuracy_real", "utility/majority"} <= set(
        metrics
    )
    assert np.isfinite(list(metrics.values())).all()


def test_without_labels_there_is_no_accuracy():
    plain = [Labelled(some.features, ("",) * len(some)) for some in (REAL, HELD_OUT, ZERO)]
    stick = yardstick(*plain, outputs=100, seed=0, repeats=1)
    found = stick.measure(2, plain[2])
    assert (found.accuracy, stick.references.accuracy_real, stick.references.majority) == (None, None, None)
    assert found.rounds == 2
    assert found.mauve.spread == 0
    assert not any("accuracy" in name or "majority" in name for name in utility_metrics(found))


def test_mauve_is_1_for_equal_sets_symmetric_and_small_for_far_ones():
    one, other, far = texts(200, 1).features, texts(200, 2).features, -texts(200, 1, blur=0.1).features
    assert mauve_score(one, one, 20, 0) == pytest.approx(1.0)
    assert 0.5 < mauve_score(one, other, 20, 0) < 1
    assert mauve_score(one, far, 20, 0) < 0.1
    assert mauve_score(one, other, 20, 0) == mauve_score(one, other, 20, 0)
    assert mauve_score(one, other, 20, 0) != mauve_score(one, other, 40, 0)


@pytest.mark.parametrize(
    ("one", "other", "buckets", "message"),
    [
        (np.ones((5, 2)), np.ones((5, 3)), 2, "features have shapes"),
        (np.ones(5), np.ones(5), 2, "features have shapes"),
        (np.ones((5, 2)), np.ones((9, 2)), 6, "6 buckets for 5 and 9 texts"),
        (np.ones((5, 2)), np.ones((9, 2)), 1, "at least 2 buckets"),
        (np.ones((5, 2)), np.full((5, 2), np.nan), 2, "not a finite number"),
    ],
)
def test_what_mauve_cannot_compare_is_refused(one, other, buckets, message):
    with pytest.raises(DataError, match=message):
        mauve_score(one, other, buckets, 0)


def test_too_few_texts_are_refused():
    with pytest.raises(DataError, match="19 texts on the smaller side"):
        yardstick(REAL, HELD_OUT, ZERO, outputs=19, seed=0)
    with pytest.raises(DataError, match="0 seeds"):
        yardstick(REAL, HELD_OUT, ZERO, outputs=30, seed=0, repeats=0)
    stick = yardstick(REAL, HELD_OUT, ZERO, outputs=30, seed=0, repeats=1)
    with pytest.raises(DataError, match="29 texts, 30 are compared"):
        stick.measure(1, texts(29, 0))


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        (np.ones((2, 3)), ("a",), "for 1 labels"),
        (np.empty((0, 3)), (), "at least one text"),
        (np.array([[1, np.inf]]), ("a",), "not a finite number"),
    ],
)
def test_texts_that_do_not_fit_their_labels_are_refused(features, labels, message):
    with pytest.raises(DataError, match=message):
        Labelled(features, labels)


def test_a_classifier_learns_what_there_is_to_learn():
    assert accuracy(texts(200, 1, blur=0.1), texts(90, 2, blur=0.1)) == 1.0
    assert accuracy(texts(200, 1, labels="a"), HELD_OUT) == pytest.approx(1 / 3)
    assert majority_accuracy(texts(30, 1, labels="b"), HELD_OUT) == pytest.approx(1 / 3)
    assert majority_accuracy(texts(4, 1, labels="ba"), texts(3, 1, labels="aab")) == pytest.approx(2 / 3)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8))
def test_mean_and_spread_are_those_of_the_seeds(values):
    found = Repeated(tuple(values))
    assert found.mean == pytest.approx(np.mean(values))
    expected = np.std(values, ddof=1) if len(values) > 1 else 0.0
    assert found.spread == pytest.approx(expected)


def test_nothing_is_imported_early_or_printed():
    code = """
import sys
import numpy as np
import coalmine.auditor.utility.measure
from coalmine.auditor.utility.mauve_score import mauve_score
assert not {"mauve", "sklearn", "faiss", "torch"} & set(sys.modules)
mauve_score(np.random.default_rng(0).normal(size=(60, 4)), np.random.default_rng(1).normal(size=(60, 4)), 12, 0)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
