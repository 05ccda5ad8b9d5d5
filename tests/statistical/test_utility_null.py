"""Labels that say nothing cannot be learnt, labels that do can; MAUVE falls as texts move away. Fixed seeds."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom

from coalmine.auditor.utility.downstream import Labelled, accuracy
from coalmine.auditor.utility.mauve_score import mauve_score

pytestmark = pytest.mark.statistical

LEVEL = 1e-8
TEST = 4000


def drawn(size, seed, strength):
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=size)
    features = rng.normal(size=(size, 8))
    features[:, 0] += strength * (2 * labels - 1)
    return Labelled(features, tuple("ab"[label] for label in labels))


@pytest.mark.parametrize(("strength", "learnt"), [(0.0, False), (0.5, True)])
def test_accuracy_is_chance_only_where_labels_say_nothing(strength, learnt):
    right = round(TEST * accuracy(drawn(1000, 1, strength), drawn(TEST, 2, strength)))
    # The test labels are fair coins independent of a classifier that learnt nothing.
    at_chance = binom.ppf(LEVEL / 2, TEST, 0.5) <= right <= binom.isf(LEVEL / 2, TEST, 0.5)
    assert at_chance != learnt


def test_mauve_falls_with_the_distance_of_the_two_laws():
    rng = np.random.default_rng(3)
    one, same = rng.normal(size=(2, 1000, 6))
    scores = [mauve_score(one, same + shift, 50, 1) for shift in (0.0, 0.5, 1.0, 2.0)]
    assert scores[0] > 0.9
    assert all(nearer > further + 0.05 for nearer, further in pairwise(scores))
