"""Canary's Echo: blind where nothing was learnt, sharp where canaries were copied."""

import numpy as np
import pytest
from scipy.stats import binom

from coalmine.auditor.disclosure.echo import echo

pytestmark = pytest.mark.statistical

LETTERS = np.array([f"w{number}" for number in range(60)])


def text(rng, words):
    return " ".join(rng.choice(LETTERS, words))


def audit(seed, copies):
    """200 canaries, half put in, of which ``copies`` stand in the audited text; each reference saw a quarter of all."""
    rng = np.random.default_rng(seed)
    canaries = [text(rng, 20) for _ in range(200)]
    member = np.zeros(200, bool)
    member[rng.choice(200, 100, replace=False)] = True
    parts = rng.permutation(200).reshape(4, 50)

    def output(inside):
        made = [text(rng, 20) for _ in range(100)]
        return made + [canaries[index] for index in rng.choice(inside, min(copies, len(inside)), replace=False)]

    own, *others = (output(inside) for inside in (np.flatnonzero(member), *parts))
    return echo(canaries, member, lambda: own, [lambda texts=texts: texts for texts in others], rng)


def test_area_and_p_value_under_the_null():
    runs = [audit(seed, 0) for seed in range(300)]
    # The rank sum of 100 + 100 exchangeable scores has standard deviation sqrt(201 / (12 * 100 * 100)) = 0.0409.
    areas = np.array([run.roc.auc for run in runs])
    assert abs(areas.mean() - 0.5) < 5.5 * 0.0409 / np.sqrt(300)
    assert 0.75 < areas.std() / 0.0409 < 1.25
    rejected = sum(run.roc.p_value <= 0.05 for run in runs)
    assert binom.ppf(1e-7, 300, 0.05) <= rejected <= binom.isf(1e-7, 300, 0.05)


def test_copied_canaries_are_found():
    found = audit(1, 100)
    assert found.roc.auc > 0.95
    assert found.roc.p_value < 1e-6
    assert [rate.tpr for rate in found.low] == sorted(rate.tpr for rate in found.low)
    assert found.low[-1].tpr > 0.8
    half = audit(2, 50)
    assert 0.65 < half.roc.auc < found.roc.auc
    assert half.roc.p_value < 1e-4
