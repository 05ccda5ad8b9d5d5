"""Switches off telemetry and sets what must be set before a library is imported. Import nothing heavy here."""

from __future__ import annotations

import os
import secrets

from coalmine.clients.encoder.folder import default_cache_folder

_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # despite its name: Ray stays on the loopback address
    "RAY_AUTH_MODE": "token",
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "GIT_PYTHON_REFRESH": "quiet",
}


def be_quiet() -> None:
    """No telemetry; a cluster of this process's own answers to a token that nobody else knows and no file holds.

    Compiled kernels go to the user's cache folder, so that one process compiles for all. Threads that wait for each
    other sleep: where another program wants the cores too, waiting awake made a language model several times slower.
    """
    for name, value in _SETTINGS.items():
        os.environ[name] = value
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("NUMBA_CACHE_DIR", str(default_cache_folder() / "kernels"))
