"""Fixtures that several test folders share."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("coalmine", deadline=None)  # a busy machine is no failure
settings.load_profile("coalmine")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder `shared` with golden values and data: beside the checkout, or where COALMINE_SHARED says."""
    place = Path(os.environ.get("COALMINE_SHARED") or Path(__file__).resolve().parents[2] / "shared")
    if not place.is_dir():
        pytest.skip("needs the folder `shared` (golden values, data) beside the checkout or in COALMINE_SHARED")
    return place
