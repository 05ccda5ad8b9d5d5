"""Every step between a drawn user and a counted vote happens at its rate, independently of the others.

Two-sided: the right rate is accepted, two thirds and three halves of it are rejected. Fewer than twenty checks, each
failing by chance with probability LEVEL.
"""

import numpy as np
import pytest
from scipy.stats import binom

from coalmine.clients.population.availability import Diurnal, Independent
from coalmine.clients.population.conditions import Conditions, Deadline
from coalmine.protocol.randomness import Simulated, participates

pytestmark = pytest.mark.statistical

LEVEL = 1e-8
KEY = Simulated(17).participation_key
USERS = [f"user {u}" for u in range(30_000)]


def fits(count, n, rate):
    return binom.ppf(LEVEL / 2, n, rate) <= count <= binom.isf(LEVEL / 2, n, rate)


def checked(count, n, rate):
    assert fits(count, n, rate)
    assert not fits(count, n, rate * 2 / 3)
    assert not fits(count, n, min(1.0, rate * 3 / 2))


@pytest.mark.parametrize(
    ("conditions", "rate"),
    [
        (Conditions(Independent(0.3)), 0.3),
        (Conditions(dropout=0.4), 0.6),
        (Conditions(deadline=Deadline(0.5)), 0.24410),
        (Conditions(Independent(0.5), 0.5, Deadline(1.0)), 0.125),
        (Conditions(Diurnal(0.2, 0.6)), 0.4),  # the mean over zones that cover the day evenly
    ],
)
def test_users_answer_at_their_rate_and_are_drawn_at_theirs(conditions, rate):
    answering = conditions.answering(KEY, 3, USERS)
    checked(int(answering.sum()), len(USERS), rate)
    drawn = np.array([participates(KEY, 3, user, 0.4) for user in USERS])
    checked(int((drawn & answering).sum()), len(USERS), 0.4 * rate)
    later = conditions.answering(KEY, 27, USERS)  # the same hour of the next day
    expected = rate**2 if not isinstance(conditions.availability, Diurnal) else 0.4**2 + 0.2**2 / 2
    checked(int((answering & later).sum()), len(USERS), expected)


def test_zones_have_their_weights():
    zones = Diurnal(0, 1, zones=((-5.0, 1.0), (0.0, 2.0), (8.0, 5.0)))
    found = np.array([zones.zone(KEY, user) for user in USERS])
    for offset, share in ((-5, 1 / 8), (0, 2 / 8), (8, 5 / 8)):
        checked(int((found == offset).sum()), len(USERS), share)
