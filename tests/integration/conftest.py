"""Integration tests run with a guard on sockets, here and in every process they start, and without the variable CI, by
which some libraries switch telemetry off."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

_GUARD = Path(__file__).parent / "guard"


@pytest.fixture(autouse=True, scope="session")
def _guarded(tmp_path_factory):
    log = tmp_path_factory.mktemp("guard") / "connections.txt"
    saved = {name: os.environ.get(name) for name in ("COALMINE_SOCKET_LOG", "PYTHONPATH", "CI")}
    os.environ["COALMINE_SOCKET_LOG"] = str(log)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_GUARD), saved["PYTHONPATH"]]))
    os.environ.pop("CI", None)
    specification = importlib.util.spec_from_file_location("socket_guard", _GUARD / "sitecustomize.py")
    guard = importlib.util.module_from_spec(specification)
    sys.modules["socket_guard"] = guard
    specification.loader.exec_module(guard)
    yield log
    for name, value in saved.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


@pytest.fixture(autouse=True)
def _nothing_connected(_guarded):
    """A library may swallow the refusal, so the log decides."""
    yield
    assert not _guarded.exists(), _guarded.read_text()
