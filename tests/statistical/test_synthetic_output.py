"""The synthetic output follows the thresholded noisy counts: chi-square accepts them and rejects neighbours."""

import numpy as np
import pytest
from scipy.stats import chisquare

from coalmine.server.select import select, synthetic_output

pytestmark = pytest.mark.statistical

LEVEL = 1e-7
DRAWS = 20_000
HISTOGRAM = np.array([5.0, 1.0, -2.0, 3.0, 0.5, 2.0])


@pytest.mark.parametrize("threshold", [0.0, 0.4])
def test_it_is_drawn_in_proportion_to_what_exceeds_the_threshold(threshold):
    survivors = select(HISTOGRAM, [""] * 6, np.empty(0, np.int64), share=1.0, threshold=threshold)
    drawn = np.bincount(synthetic_output(survivors, DRAWS, np.random.default_rng(3)), minlength=6)

    def p_value(weights):
        kept = weights > 0
        assert drawn[~kept].sum() == 0
        return chisquare(drawn[kept], DRAWS * weights[kept] / weights[kept].sum()).pvalue

    right = np.maximum(HISTOGRAM - threshold, 0)
    assert p_value(right) > LEVEL
    assert p_value(np.where(right > 0, right**1.2, 0)) < LEVEL
    assert p_value((right > 0) * 1.0) < LEVEL
