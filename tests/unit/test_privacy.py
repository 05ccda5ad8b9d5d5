"""The knobs that can change a guarantee stay in their ranges."""

import re
from dataclasses import FrozenInstanceError

import pytest

from coalmine.protocol.errors import StudyError
from coalmine.protocol.privacy import Mechanism

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("key", "allowed", "refused"),
    [
        ("q", (1e-9, 0.5, 1.0, 1), (0.0, -0.1, 1e-13, 1.0000001, NAN, INF)),
        ("sigma", (1e-3, 1.0, 100), (0.0, -1.0, 1e-320, 1e7, 1e308, NAN, INF)),
        ("clip", (1e-3, 1.0, 100), (0.0, -1.0, 1e-320, 1e7, 1e308, NAN, INF)),
        ("delta", (1e-12, 0.5), (0.0, 5e-324, 1.0, -1e-5, NAN, INF)),
        ("votes_per_record", (1, 50), (0, -1)),
        ("max_records", (1, 50), (0, -1)),
    ],
)
def test_ranges(key, allowed, refused):
    for value in allowed:
        assert getattr(Mechanism(**{key: value}), key) == value
    for value in refused:
        with pytest.raises(StudyError, match=re.escape(f"privacy.{key}: {value!r} is not allowed (needs")):
            Mechanism(**{key: value})


def test_the_noise_of_a_coordinate_is_sigma_times_c():
    assert Mechanism(sigma=0.5, clip=4.0).noise_std == 2.0


def test_a_mechanism_does_not_change():
    with pytest.raises(FrozenInstanceError):
        Mechanism().q = 1.0
