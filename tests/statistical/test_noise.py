"""The noise of a release has standard deviation sigma * C: no less and no more, fresh in every round and coordinate.

Two-sided: the right value is accepted, 2/3 and 3/2 of it are rejected. Each check fails a right mechanism with
probability LEVEL; there are fewer than a hundred of them.
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
SIZE = 20_000
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
    assert not spread_fits(noise, mechanism.sigma)  # the clip belongs to it
    assert abs(noise.mean()) <= norm.isf(LEVEL / 2) * std / np.sqrt(SIZE)
    assert kstest(noise / std, norm.cdf).pvalue > LEVEL


@pytest.mark.parametrize("randomness", SOURCES, ids=lambda source: source.kind)
def test_noise_is_fresh_in_every_round_and_coordinate(randomness):
    noise = released(randomness, Mechanism(), (0, 1, 2))
    for one, other in ((noise[0], noise[1]), (noise[1], noise[2]), (noise[0, 1:], noise[0, :-1])):
        agree = int((np.sign(one) == np.sign(other)).sum())
        assert binom.ppf(LEVEL, len(one), 0.5) <= agree <= binom.isf(LEVEL, len(one), 0.5)
        assert spread_fits((one - other)[::2], 0.1 * np.sqrt(2))


def test_protected_noise_is_the_discrete_gaussian():
    units = draw_noise(Protected(b""), 1.5, 0, SIZE, 0)
    weights = np.exp(-(np.arange(-60, 61) ** 2) / (2 * 1.5**2))
    weights /= weights.sum()
    cells = np.concatenate([[weights[:57].sum()], weights[57:64], [weights[64:].sum()]])  # <= -4, -3 ... 3, >= 4
    counts = np.bincount(np.clip(units, -4, 4) + 4, minlength=9)
    assert chisquare(counts, SIZE * cells).pvalue > LEVEL
