"""A disclosure audit from files to a result: the Python call behind `coalmine audit disclosures`."""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from coalmine.auditor.disclosure.assignment import AssignmentKind, declare
from coalmine.auditor.disclosure.audit import Audited, Described, audit_disclosures
from coalmine.auditor.disclosure.material import in_memory
from coalmine.auditor.disclosure.settings import Settings
from coalmine.deploy.disclosure.files import FileMaterial, ThreeFiles, open_files
from coalmine.protocol.ports import Advance
from coalmine.protocol.privacy import PrivacyUnit

if TYPE_CHECKING:
    from coalmine.auditor.disclosure.feature_class import FeatureClass
    from coalmine.deploy.progress import Stages


def audit_files(
    files: ThreeFiles,
    classes: Callable[[], Sequence[FeatureClass]],
    kind: AssignmentKind = AssignmentKind.UNKNOWN,
    p: float | None = None,
    settings: Settings | None = None,
    *,
    name: str = "disclosures",
    stages: Stages | None = None,
) -> Audited:
    """Audit a synthetic file against the files of train and holdout.

    Args:
        classes: makes the feature classes, once the files are known to be sound.
        kind, p: how users came into train; see ``declare``.

    Raises:
        CoalmineError: anything about files, declarations or models that does not fit.
    """

    def watch(stage: str) -> AbstractContextManager[object]:
        return stages.stage(stage) if stages is not None else _silent(stage, 0)

    def progress(what: str, total: int) -> AbstractContextManager[Advance]:
        return stages.stage(what, total or None, "records") if stages is not None else _silent(what, total)

    with watch("check files"):
        material = open_files(files, progress)
        assignment = declare(kind, p, material.train)
    made = classes()
    found = audit_disclosures(material, made, assignment, settings, _described(material), name=name, watch=watch)
    return replace(found, audit=replace(found.audit, seconds={} if stages is None else dict(stages.seconds)))


def audit_output(
    train: Sequence[Iterable[str]],
    holdout: Sequence[Iterable[str]],
    synthetic: Iterable[str],
    classes: Sequence[FeatureClass],
    kind: AssignmentKind = AssignmentKind.UNKNOWN,
    p: float | None = None,
    settings: Settings | None = None,
    *,
    name: str = "disclosures",
) -> Audited:
    """The same for records in memory: what a stage of a study calls on the output of a round.

    Args:
        train, holdout: the records of each user.
    """
    material = in_memory(train, holdout, synthetic)
    return audit_disclosures(material, classes, declare(kind, p, material.train), settings, name=name)


def _described(material: FileMaterial) -> Described:
    digests = {
        split: hashlib.sha256(seen.digests.tobytes()).hexdigest()[:16]
        for split, seen in zip(("train", "holdout", "synthetic"), material.surveys, strict=True)
    }
    return Described(
        material.records,
        material.synthetic_records,
        material.canaries,
        PrivacyUnit.RECORD if material.user is None else PrivacyUnit.USER,
        material.warnings,
        {
            "version": importlib.metadata.version("coalmine"),
            **({} if material.user is None else {"column of users": material.user}),
            **{f"digest of {split}": digest for split, digest in digests.items()},
        },
    )


@contextmanager
def _silent(what: str, total: int) -> Iterator[Advance]:
    yield lambda done: None
