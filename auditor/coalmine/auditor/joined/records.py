"""Finished runs on disk: the records that they left, each read whole or refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from coalmine.auditor.disclosure.report import record as disclosure
from coalmine.auditor.disclosure.result import DisclosureAudit
from coalmine.auditor.joined.disclosure_rows import disclosure_rows, without_epsilon
from coalmine.auditor.joined.plausible import require_plausible
from coalmine.auditor.joined.row import Row, named
from coalmine.auditor.joined.training_rows import membership_rows, trained_rows
from coalmine.auditor.joined.vote_rows import one_run_rows, round_rows, rounds_rows
from coalmine.auditor.membership import result as training
from coalmine.auditor.one_run_audit import OneRunStudy
from coalmine.auditor.report import one_run, record, rounds, sweep
from coalmine.auditor.rounds.study import RoundsAudit
from coalmine.protocol.errors import InputError, StorageError, StudyError, nearest

PLACES = (
    "findings.json",
    "rounds.json",
    "sweep.json",
    "one-run.json",
    "membership.json",
    "one-run/one-run.json",
    "training/membership.json",
    "training/findings.json",
    "disclosures/round-*/findings.json",
)
"""Where runs leave their records, below a study's folder or in a folder of their own."""
_REMEDY = "run the study again, or leave the folder out"


@dataclass(frozen=True)
class Read:
    """One record.

    Attributes:
        folder: the name of the folder that was asked for, without where it lies. file: the record, relative to it.
        format: what the record says that it is.
        notes: what has no row, and why.
    """

    folder: str
    file: str
    format: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


def read_folders(folders: Sequence[Path]) -> tuple[Read, ...]:
    """All records of all folders, in the order of the folders.

    Raises:
        StudyError: no folder, a folder that is not there or holds no record, or a record that is met twice.
        StorageError: a record that is damaged or of another version.
    """
    if not folders:
        raise StudyError("nothing to join", where="folders", remedy="name at least one folder of a finished run")
    found: list[Read] = []
    seen: dict[Path, Path] = {}
    for folder in folders:
        paths = list(_paths(folder))
        for path in paths:
            if (before := seen.get(path.resolve())) is not None:
                raise StudyError(
                    f"the record {path.name} is also in {before}", where=str(folder), remedy="name each run once"
                )
        seen |= {path.resolve(): folder for path in paths}
        found += _audited_or_claimed([_read(path, folder) for path in paths])
    return tuple(found)


def _paths(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        raise StudyError("there is no such folder", where=str(folder), remedy="name the folder of a finished run")
    paths = [path for place in PLACES for path in sorted(folder.glob(place), key=_by_number)]
    if not paths:
        raise StudyError("no run has left a record here", where=str(folder), remedy=f"needs one of {', '.join(PLACES)}")
    yield from paths


def _by_number(path: Path) -> tuple[int, str]:
    """round-2 before round-10."""
    return len(str(path)), str(path)


def _read(path: Path, folder: Path) -> Read:
    try:
        document = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except OSError as error:
        raise StorageError(error.strerror or "cannot be read", where=str(path)) from error
    except (ValueError, RecursionError) as error:
        raise StorageError("the record is damaged: not strict JSON", where=str(path), remedy=_REMEDY) from error
    try:
        form = document.get("format") if isinstance(document, dict) else None
        if not isinstance(form, str) or form not in _READERS:
            remedy = "use the version that wrote it, or run the study again; " + nearest(str(form), _READERS)
            raise StorageError(f"a record of the format {form!r} is not known here", remedy=remedy)
        require_plausible(document)
        rows, notes = _READERS[form](document)
    except InputError as error:
        place = f"{path}, {error.where}" if error.where else str(path)
        raise StorageError(error.what, where=place, remedy=error.remedy) from error
    except (LookupError, RecursionError) as error:
        raise StorageError("the record is damaged: its parts do not fit", where=str(path), remedy=_REMEDY) from error
    return Read(_printable(folder.resolve().name), path.relative_to(folder).as_posix(), form, rows, notes)


def _printable(name: str) -> str:
    """A folder may be called by bytes that are no text."""
    return name.encode("utf-8", "backslashreplace").decode()


def _refuse(word: str) -> float:
    raise ValueError(word)


def _audited_or_claimed(found: list[Read]) -> list[Read]:
    """A trained model's bare claim has a row where its plan was not audited in the same folder."""
    audited = any(one.format in (training.AUDIT_FORMAT, training.SWEEP_FORMAT) for one in found)
    return [one for one in found if not (audited and one.format == training.TRAINED_FORMAT)]


Rows = tuple[tuple[Row, ...], tuple[str, ...]]
"""What a record says, and notes about what it does not."""


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _round(document: dict[str, Any]) -> Rows:
    return round_rows(record.from_json(document)), ()


def _rounds(document: dict[str, Any]) -> Rows:
    return rounds_rows(record.restored(_adapter(RoundsAudit), document, rounds.FORMAT, rounds.to_json)), ()


def _one_run(document: dict[str, Any]) -> Rows:
    return one_run_rows(record.restored(_adapter(OneRunStudy), document, one_run.FORMAT, one_run.to_json)), ()


def _sweep(document: dict[str, Any]) -> Rows:
    def point(values: dict[str, Any], findings: dict[str, Any]) -> Rows:
        return round_rows(record.from_json(findings), values), ()

    return _points(document, point)


def _trained(document: dict[str, Any]) -> Rows:
    form, write = training.TRAINED_FORMAT, training.trained_json
    return trained_rows(record.restored(_adapter(training.Trained), document, form, write)), ()


def _membership(document: dict[str, Any], values: dict[str, Any] | None = None) -> Rows:
    form, write = training.AUDIT_FORMAT, training.audit_json
    audit: training.MembershipAudit = record.restored(_adapter(training.MembershipAudit), document, form, write)
    beside = {"label-only rates": audit.label_only, "disparate impact": audit.disparate}
    where = named(audit.study, values or {})
    notes = tuple(f"{where}: {what} bound no epsilon and have no row" for what, found in beside.items() if found)
    return membership_rows(audit, values), notes


def _membership_sweep(document: dict[str, Any]) -> Rows:
    return _points(document, lambda values, findings: _membership(findings, values))


def _disclosures(document: dict[str, Any]) -> Rows:
    audit: DisclosureAudit = record.restored(_adapter(DisclosureAudit), document, disclosure.FORMAT, disclosure.to_json)
    silent = without_epsilon(audit)
    notes = (f"{audit.name}: nothing to count in {', '.join(silent)}, so no epsilon and no row",) if silent else ()
    return disclosure_rows(audit), notes


def _points(document: dict[str, Any], point: Callable[[dict[str, Any], dict[str, Any]], Rows]) -> Rows:
    points = document.get("points")
    if not isinstance(points, list) or not points:
        raise StorageError("the findings are damaged: no points", where="/points", remedy=_REMEDY)
    rows: list[Row] = []
    notes: list[str] = []
    for number, one in enumerate(points):
        values, findings = (one.get(key) if isinstance(one, dict) else None for key in ("values", "findings"))
        if not isinstance(values, dict) or not isinstance(findings, dict):
            place = f"/points/{number}"
            raise StorageError("the findings are damaged: no values or findings", where=place, remedy=_REMEDY)
        try:
            found = point(values, findings)
        except InputError as error:
            raise StorageError(error.what, where=f"/points/{number}{_below(error)}", remedy=error.remedy) from error
        rows += found[0]
        notes += found[1]
    return tuple(rows), tuple(notes)


def _below(error: InputError) -> str:
    place = error.where or ""
    return place if place.startswith("/") else f"/{place}" if place else ""


_READERS: dict[str, Callable[[dict[str, Any]], Rows]] = {
    record.FORMAT: _round,
    rounds.FORMAT: _rounds,
    sweep.FORMAT: _sweep,
    one_run.FORMAT: _one_run,
    training.TRAINED_FORMAT: _trained,
    training.AUDIT_FORMAT: _membership,
    training.SWEEP_FORMAT: _membership_sweep,
    disclosure.FORMAT: _disclosures,
}
