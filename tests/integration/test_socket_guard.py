"""The guard itself: it must be able to fail."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.integration

_TRY = "import socket; socket.create_connection(('203.0.113.1', 9), timeout=1)"


def test_a_connection_elsewhere_is_refused_and_logged(tmp_path):
    log = tmp_path / "log.txt"
    done = subprocess.run(
        [sys.executable, "-c", _TRY],
        env={**os.environ, "COALMINE_SOCKET_LOG": str(log)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "not allowed in tests" in done.stderr
    assert "203.0.113.1" in log.read_text()


def test_ci_is_unset():
    assert "CI" not in os.environ
