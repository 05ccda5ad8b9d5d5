"""`coalmine audit training` from start to finish: one study or the points of a sweep; run, write, show, track."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coalmine.deploy.manifest import forget, versions
from coalmine.deploy.studio import tell_tracked
from coalmine.deploy.study import Study
from coalmine.deploy.training.checks import auditable, unmodelled
from coalmine.deploy.training.prepare import (
    AUDITED,
    OF_AUDITS,
    OF_TRAINING,
    SHADOWS,
    Prepared,
    audit_facts,
    begin,
    prepared,
)
from coalmine.deploy.training.studio import opened, tell, track
from coalmine.protocol.errors import StudyError

if TYPE_CHECKING:
    from coalmine.auditor.membership.result import Audited, Value
    from coalmine.deploy.progress import Stages

_STORE = 256 << 20
"""Bytes of Ray's object store: the samples, and results on their way."""

_OF_THE_AUDIT = ("training.audit.interpolation", "training.audit.models", "training.audit.sampling")
"""What may differ between points of one report; its level and what it asks may not."""

Points = Sequence[tuple[dict[str, Any], Study]]


def conduct_audit(points: Points, as_json: bool, *, resume: bool = False, replace: bool = False) -> None:
    """Audit a study, or every point of a sweep in one report.

    Args:
        points: the values of the swept keys, and the study.
        resume: keep the shadow models that a stopped audit has finished.
        replace: start anew whatever another audit left in the folder.

    Raises:
        CoalmineError: bad input, or a model that diverged. What was finished is kept for ``resume``.
    """
    from coalmine.auditor.membership.report.publish import publish
    from coalmine.auditor.membership.result import audited_json
    from coalmine.auditor.membership.runs import audited_records, audited_runs
    from coalmine.auditor.membership.table import audited_rich
    from coalmine.auditor.report.write import write_json

    study = points[0][1]
    with opened(study, resume=resume, replace=replace) as (console, stages, folder):
        finished = len(list((folder / SHADOWS).glob("*.npz")))
        if finished and not resume and not (folder / AUDITED).is_file():
            told = f"starting anew; --resume would keep {finished} finished groups of shadow models"
            console.print(told, style="yellow", highlight=False)
        with stages, redirect_stdout(sys.stderr):
            with stages.stage("data"):
                ready = _prepared(points)
            for notice in dict.fromkeys(told for one in ready for told in (*one.notices, *unmodelled(one))):
                console.print(notice, style="yellow", markup=False, highlight=False)
            found = _audited(points, ready, folder, stages, resume=resume, replace=replace)
            with stages.stage("report"):
                report = publish(found, folder)
            write_json(folder / AUDITED, audited_json(found))
            tracked = track(study, audited_runs(found), audited_records(found), folder, stages)
        tell(audited_json(found), audited_rich(found), as_json)
        for _, audit in found.points:
            if audit.alarm is not None:
                console.print(audit.alarm, style="bold white on red", markup=False, highlight=False)
        tell_tracked(console, tracked)
        console.print(f"report: {report}", markup=False, highlight=False, soft_wrap=True)


def _audited(
    points: Points, ready: Sequence[Prepared], folder: Path, stages: Stages, *, resume: bool, replace: bool
) -> Audited:
    from coalmine.auditor.membership.result import Audited
    from coalmine.deploy.cluster import available_cores, cluster

    study, place = points[0][1], folder / SHADOWS
    with ExitStack() as workers:
        with stages.stage("start workers"):
            from coalmine.deploy.training.shelf import Shelf

            facts = _facts(points, ready)
            shelf = Shelf(place, json.dumps(versions()))
            begin(place, facts, resume=resume, replace=replace)
            if not resume:
                shelf.clear()
                forget(folder, *OF_AUDITS, *(OF_TRAINING if replace else ()))
            workers.enter_context(cluster(study.execution.workers or available_cores(), _STORE))
            from coalmine.deploy.training.audit import audit_training
        audits = [audit_training(own, one, stages, shelf) for (_, own), one in zip(points, ready, strict=True)]
    found = tuple((_plain(values), audit) for (values, _), audit in zip(points, audits, strict=True))
    return Audited(study.study, tuple(points[0][0]), found)


def _plain(values: dict[str, Any]) -> dict[str, Value]:
    """Keys that change together as text."""
    return {
        key: value if isinstance(value, int | float | str | None) else _together(value) for key, value in values.items()
    }


def _together(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {given}" for key, given in value.items())
    return json.dumps(value)


def _prepared(points: Points) -> list[Prepared]:
    """Everything that a mistake can stop comes before workers are started.

    Raises:
        StudyError: points that differ in more than their training, or as :func:`auditable`.
    """
    for key in points[0][0]:
        if key.partition(".")[0] != "training" or (key.startswith("training.audit") and key not in _OF_THE_AUDIT):
            remedy = f"sweep keys of training; of its audit only {', '.join(_OF_THE_AUDIT)}"
            raise StudyError(f"{key} cannot be swept here", where=f"sweep: {key}", remedy=remedy)
    ready = [prepared(study) for _, study in points]
    for one in ready:
        auditable(one)
    return ready


def _facts(points: Points, ready: Sequence[Prepared]) -> dict[str, str]:
    """What decides the numbers, of every point."""
    told: dict[str, str] = {}
    for (values, study), one in zip(points, ready, strict=True):
        named = "".join(f"{key}={value}, " for key, value in values.items())
        told |= {f"{named}{key}": value for key, value in audit_facts(one, study.seed).items()}
    return told
