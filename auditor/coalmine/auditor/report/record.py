"""An audited round as strict JSON: ``findings.json``, and what ``coalmine run --json`` prints.

JSON has no infinity and no NaN. Where a number is not finite, ``null`` stands in its place and ``not_finite`` says what
it was, keyed by its JSON pointer (RFC 6901): ``{"/attacks/0/canaries/1/monte_carlo/details/threshold": "inf"}``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from coalmine.auditor.report.write import json_text, write_text
from coalmine.auditor.result import RoundAudit
from coalmine.protocol.errors import StorageError

FORMAT = "coalmine findings 1"
Found = TypeVar("Found")
_BESIDE = ("format", "verdict", "not_finite")
"""Keys of a record that are no field of what it was written from."""


@cache
def _adapter() -> TypeAdapter[RoundAudit]:
    return TypeAdapter(RoundAudit)


def to_json(audit: RoundAudit) -> dict[str, Any]:
    """Strings, finite numbers, booleans, ``None``, lists and dicts only; field names are those of ``RoundAudit``."""
    return {"format": FORMAT, **strict(_adapter().dump_python(audit, mode="json"))}


def strict(document: dict[str, Any]) -> dict[str, Any]:
    """The document with ``null`` for every number that is not finite, and what each was under ``not_finite``."""
    infinite = dict(_not_finite(document, ""))
    for pointer in infinite:
        _put(document, pointer, None)
    return {**document, "not_finite": infinite}


def from_json(document: dict[str, Any]) -> RoundAudit:
    """The inverse of :func:`to_json`.

    Raises:
        StorageError: another format, a missing, unknown or altered field.
    """
    return restored(_adapter(), document, FORMAT, to_json)


def restored(
    adapter: TypeAdapter[Found], document: dict[str, Any], form: str, write: Callable[[Found], dict[str, Any]]
) -> Found:
    """What a record was written from.

    Args:
        form: the only format that is read. write: makes the record; the document must be what it would make.

    Raises:
        StorageError: another format, a missing, unknown or altered field.
    """
    remedy = "write it again from the audit"
    if document.get("format") != form:
        raise StorageError(f"these findings are not in the format {form!r}", where="format", remedy=remedy)
    fields = json.loads(json.dumps({key: document[key] for key in document if key not in _BESIDE}))
    try:
        for pointer, value in document.get("not_finite", {}).items():
            _put(fields, pointer, float(value))
        audit = adapter.validate_python(fields)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = "/" + "/".join(map(str, first["loc"]))
        raise StorageError(f"the findings are damaged: {first['msg']}", where=place, remedy=remedy) from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise StorageError("the findings are damaged", where="not_finite", remedy=remedy) from error
    if write(audit) != document:
        raise StorageError("the findings hold a field that this version does not know", remedy=remedy)
    return audit


def dumps(audit: RoundAudit) -> str:
    """The text of ``findings.json``."""
    return json_text(to_json(audit))


def write(audit: RoundAudit, folder: Path) -> Path:
    """Write ``findings.json`` into an existing folder.

    Raises:
        StorageError: the folder cannot be written.
    """
    return write_text(folder / "findings.json", dumps(audit))


def read(path: Path) -> RoundAudit:
    """Read ``findings.json``.

    Raises:
        StorageError: no such file, not JSON, or not what :func:`write` wrote.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StorageError(error.strerror or "cannot be read", where=str(path)) from error
    except ValueError as error:
        raise StorageError("not a JSON file", where=str(path), remedy="write it again from the audit") from error
    return from_json(document)


def _not_finite(node: Any, pointer: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, float) and not math.isfinite(node):
        yield pointer, str(node)
    elif isinstance(node, dict):
        for key, child in node.items():
            yield from _not_finite(child, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from _not_finite(child, f"{pointer}/{index}")


def _put(document: Any, pointer: str, value: float | None) -> None:
    *path, last = (part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
    node = document
    for part in path:
        node = node[int(part) if isinstance(node, list) else part]
    node[int(last) if isinstance(node, list) else last] = value
