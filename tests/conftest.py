"""Fixtures that several test folders share."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("coalmine", deadline=None)  # a busy machine is no failure
settings.load_profile("coalmine")
# One process compiles for all of them; the processes that tests start inherit it.
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).resolve().parents[1] / ".pytest_cache" / "kernels"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder `shared` with golden values and data: beside the checkout, or where COALMINE_SHARED says."""
    place = Path(os.environ.get("COALMINE_SHARED") or Path(__file__).resolve().parents[2] / "shared")
    if not place.is_dir():
        pytest.skip("needs the folder `shared` (golden values, data) beside the checkout or in COALMINE_SHARED")
    return place
