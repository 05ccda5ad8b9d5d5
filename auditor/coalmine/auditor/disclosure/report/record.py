"""A disclosure audit as strict JSON: ``findings.json``, and what ``coalmine audit disclosures --json`` prints."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from coalmine.auditor.disclosure.result import DisclosureAudit
from coalmine.auditor.report.write import json_text, write_text

FINDINGS = "findings.json"
FORMAT = "coalmine disclosures 1"


@cache
def _adapter() -> TypeAdapter[DisclosureAudit]:
    return TypeAdapter(DisclosureAudit)


def to_json(audit: DisclosureAudit) -> dict[str, Any]:
    """Strings, finite numbers, booleans, ``None``, lists and dicts; field names are those of ``DisclosureAudit``."""
    return {"format": FORMAT, "verdict": audit.verdict.value, **_adapter().dump_python(audit, mode="json")}


def dumps(audit: DisclosureAudit) -> str:
    """The text of ``findings.json``. A number that is not finite would be an error: a result has none."""
    return json_text(to_json(audit))


def write(audit: DisclosureAudit, folder: Path) -> Path:
    """Write ``findings.json`` into an existing folder.

    Raises:
        StorageError: the folder cannot be written.
    """
    return write_text(folder / FINDINGS, dumps(audit))
