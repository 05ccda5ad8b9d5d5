"""`coalmine doctor`: is this machine ready, offline too?"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from coalmine.deploy.commands.output import AsJson, answer

_PACKAGES = ("torch", "ray", "sentence-transformers", "opacus", "dp-accounting", "opendp", "mlflow", "numpy", "numba")


def doctor(
    output: Annotated[Path, typer.Option(help="Folder where results would go.")] = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Versions, cores, memory, models, write access, offline readiness. Ends with code 1 where something is missing."""
    import psutil

    from coalmine.clients.encoder.folder import default_cache_folder
    from coalmine.clients.encoder.model_files import locate
    from coalmine.deploy.cluster import available_cores
    from coalmine.protocol.errors import CoalmineError
    from coalmine.server.generate.models import available

    problems: list[str] = []
    encoder = "ready, offline"
    try:
        locate(None)
    except CoalmineError as error:
        encoder = str(error)
        problems.append(f"encoder: {error}")
    versions = {name: _version(name) for name in _PACKAGES}
    problems += [f"{name} is not installed" for name, version in versions.items() if version is None]
    shared = Path("/dev/shm")
    folders = {"results": _writable(output), "cache": _writable(default_cache_folder())}
    problems += [f"{name} cannot be written: {state}" for name, state in folders.items() if not state.startswith("/")]
    facts = {
        "python": sys.version.split()[0],
        **versions,
        "cores": available_cores(),
        "memory GiB": round(psutil.virtual_memory().total / 2**30, 1),
        "shared memory GiB": round(shutil.disk_usage(shared).free / 2**30, 1) if shared.is_dir() else None,
        "encoder": encoder,
        **{f"generator {name}": "ready, offline" if there else "not installed" for name, there in available().items()},
        "generator rules": "ready, offline",
        **{f"folder {name}": state for name, state in folders.items()},
        "telemetry": "off (Ray, MLflow, Hugging Face)",
        "problems": problems,
    }
    answer(facts, as_json)
    raise typer.Exit(1 if problems else 0)


def _version(package: str) -> str | None:
    import importlib.metadata

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _writable(folder: Path) -> str:
    """The nearest existing folder that would have to be written to, or why it cannot be."""
    import os

    path = folder.resolve()
    while not path.exists():
        path = path.parent
    return str(folder.resolve()) if path.is_dir() and os.access(path, os.W_OK) else f"no write access to {path.name}"
