"""What a study was when it began, so that a resumed one is the same one."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import shutil
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from coalmine.auditor.report.write import write_text
from coalmine.deploy.study import Study
from coalmine.protocol.errors import StorageError, StudyError

PACKAGES = ("coalmine", "numpy", "numba", "torch", "ray", "sentence-transformers", "opacus", "dp-accounting")
_FILE = "journal/manifest.json"
_RESULTS = (
    "journal",
    "banks",
    "releases",
    "figures",
    "disclosures",
    "findings.json",
    "rounds.json",
    "report.html",
    "rounds.html",
    "bank.parquet",
)
_NOT_ITS_NUMBERS = ("execution", "tracking", "output", "training")
_SHOWN = 8


@dataclass(frozen=True)
class Manifest:
    """A study on disk.

    Attributes:
        facts: everything that decides its numbers, by name; of the seed only a digest.
        record: names its runs in MLflow. began: milliseconds since 1970.
    """

    facts: dict[str, str]
    record: str
    began: int


def versions() -> dict[str, str]:
    """Versions of the packages that decide numbers."""
    return {name: importlib.metadata.version(name) for name in PACKAGES}


def seed_digest(seed: int) -> str:
    """Names a seed without telling it (a small one can be guessed)."""
    return hashlib.sha256(f"coalmine seed {seed}".encode()).hexdigest()[:16]


def begin(study: Study, dataset_digest: str, *, resume: bool, accept_changes: bool, replace: bool = False) -> Manifest:
    """Open the study's folder: go on with what is there, or start anew and leave nothing of an earlier start.

    Args:
        replace: also what another study left there. MLflow's store stays: it is the history of the folder.

    Raises:
        StudyError: nothing to resume; a study that is not the one that began (with the difference); a new start that
            would draw released rounds a second time, or lose the results of another study.
    """
    folder = study.folder
    facts = _facts(study, dataset_digest)
    before = _read(folder / _FILE)
    if resume:
        if before is None:
            raise StudyError("there is nothing to resume", where=str(folder), remedy="run without --resume")
        if before.facts == facts:
            return before
        if not accept_changes:
            raise StudyError(
                f"the study is not the one that began: {_difference(before.facts, facts)}",
                where=str(folder),
                remedy="undo the changes, or say --accept-changes: releases stay, audits are done anew",
            )
        shutil.rmtree(folder / "journal", ignore_errors=True)
        manifest = Manifest(facts, before.record, before.began)
    else:
        kinds = study.randomness.kind, json.loads(before.facts.get("randomness.kind", "null")) if before else None
        if "protected" in kinds and any((folder / "releases").glob("*.parquet")):
            raise StudyError(
                "this folder holds releases drawn with the key; new noise on the same participation would be a second"
                " disclosure",
                where=str(folder),
                remedy="go on with --resume, or use another folder and another key",
            )
        if before is not None and not replace and _numbers(before.facts) != _numbers(facts):
            raise StudyError(
                f"this folder holds another study: {_difference(_numbers(before.facts), _numbers(facts))}",
                where=str(folder),
                remedy="use a folder of its own (--set study=NAME); `coalmine run --force` replaces what is there",
            )
        forget(folder, *_RESULTS)
        manifest = Manifest(facts, uuid.uuid4().hex, int(time.time() * 1000))
    (folder / _FILE).parent.mkdir(parents=True, exist_ok=True)
    write_text(folder / _FILE, json.dumps(asdict(manifest), indent=1))
    return manifest


def _facts(study: Study, dataset_digest: str) -> dict[str, str]:
    document = study.model_dump(mode="json", exclude={*_NOT_ITS_NUMBERS, "seed"})
    return {
        **dict(_flat(document)),
        "seed digest": seed_digest(study.seed),
        "data digest": dataset_digest,
        **{f"version of {name}": version for name, version in versions().items()},
    }


def _numbers(facts: dict[str, str]) -> dict[str, str]:
    """What the user decided: the same study on newer packages is the same study."""
    return {name: value for name, value in facts.items() if not name.startswith("version of ")}


def forget(folder: Path, *results: str) -> None:
    """Remove what an earlier run left, so that nothing old stands beside what is new.

    Raises:
        StorageError: something cannot be removed.
    """
    for name in results:
        path = folder / name
        try:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError("an old result cannot be removed", where=str(path)) from error


def _flat(node: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(node, dict):
        for key, child in node.items():
            yield from _flat(child, f"{path}.{key}" if path else key)
    else:
        yield path, json.dumps(node)


def _difference(before: dict[str, str], now: dict[str, str]) -> str:
    changed = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    shown = [f"{key} was {before.get(key, 'not set')}, is {now.get(key, 'not set')}" for key in changed[:_SHOWN]]
    return "; ".join(shown) + (f"; {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else "")


def _read(path: Path) -> Manifest | None:
    try:
        return Manifest(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise StorageError(
            "the study's manifest is damaged", where=str(path), remedy="start the study anew in another folder"
        ) from error
