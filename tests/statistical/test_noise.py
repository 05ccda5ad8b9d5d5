"""The noise of a release has standard deviation sigma * C: no less and no more, fresh in every round and coordinate.

Two-sided: the right value is accepted, 2/3 and 3/2 of it are rejected. Each check fails a right mechanism with
probability LEVEL; there are about a hundred of them.
"""

import numpy as np
import pytest
from scipy.stats import binom, chi2, chisquare, kstest, norm

from coalmine.protocol.bank import Bank, commit
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.randomness import Protected, Simulated
from coalmine.server.aggregate import Aggregator, draw_noise

pytestmark = pytest.mark.statistical

LEVEL = 5e-9
SIZE = 30_000
BANK = commit(Bank(("a",), ("",), "e"))
SOURCES = [Simulated(2), Protected(b"k" * 32)]
MECHANISMS = [Mechanism(), Mechanism(sigma=0.6, clip=0.1), Mechanism(sigma=2.0, clip=3.0)]


def released(randomness, mechanism, rounds=(0,)):
    """(rounds, SIZE) histograms of rounds in which nobody takes part."""
    server = Aggregator(mechanism, 1, 48, randomness)
    server.add(rounds, 0, np.zeros((len(rounds), SIZE), np.int64))
    return np.array([server.release(round, BANK).histogram for round in rounds])


def spread_fits(noise, std):
    """Is the mean square what independent normals of this standard deviation give?"""
    total = float(noise @ noise) / std**2
    return chi2.ppf(LEVEL / 2, len(noise)) <= total <= chi2.isf(LEVEL / 2, len(noise))


@pytest.mark.parametrize("randomness", SOURCES, ids=lambda source: source.kind)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_noise_has_standard_deviation_sigma_c(randomness, mechanism):
    (noise,) = released(randomness, mechanism)
    std = mechanism.sigma * mechanism.clip
    assert spread_fits(noise, std)
    assert not spread_fits(noise, std * 2 / 3)
    assert not spread_fits(noise, std * 3 / 2)
    assert spread_fits(noise, mechanism.sigma) == (mechanism.clip == 1)
    assert abs(noise.mean()) <= norm.isf(LEVEL / 2) * std / np.sqrt(SIZE)
    assert kstest(noise / std, norm.cdf).pvalue > LEVEL


@pytest.mark.parametrize("randomness", SOURCES, ids=lambda source: source.kind)
def test_noise_is_fresh_in_every_round_and_coordinate(randomness):
    noise = released(randomness, Mechanism(), (0, 1, 2))
    for one, other in ((noise[0], noise[1]), (noise[1], noise[2]), (noise[0, 1:], noise[0, :-1])):
        agree = int((np.sign(one) == np.sign(other)).sum())
        assert binom.ppf(LEVEL, len(one), 0.5) <= agree <= binom.isf(LEVEL, len(one), 0.5)
        assert not spread_fits(one - other, 1e-9)
        assert spread_fits((one - other)[::2], 0.1 * np.sqrt(2))


def test_protected_noise_is_the_discrete_gaussian():
    units = draw_noise(Protected(b""), 1.5, 0, SIZE, 0)
    values = np.arange(-6, 7)
    weights = np.exp(-(np.arange(-60, 61) ** 2) / (2 * 1.5**2))
    inside = weights[54:67] / weights.sum()
    counts = np.array([(units == value).sum() for value in values])
    rest = 1 - inside.sum()
    expected = SIZE * np.append(inside, rest)
    assert expected.min() > 0.1
    merged = [0, *range(1, 12), 12]
    assert chisquare(counts[merged][1:-1], expected[1:12] * counts[1:12].sum() / expected[1:12].sum()).pvalue > LEVEL
    assert (np.abs(units) <= 6).mean() > 0.999
