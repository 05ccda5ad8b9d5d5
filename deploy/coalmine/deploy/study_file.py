"""Reads a study from YAML and says in the words of the file what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import ValidationError

from coalmine.deploy.study import Study
from coalmine.deploy.study_training import anchored
from coalmine.protocol.errors import StudyError, nearest

_INPUTS = ("data.path", "bank.file", "encoder.model", "randomness.key_file", "population.trace")


class _UniqueKeys(yaml.SafeLoader):
    """A key given twice is a mistake: the second would silently replace the first."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(
                    None, None, "a list or a mapping is used as a key", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} occurs twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_study(path: Path, overrides: Sequence[str] = ()) -> Study:
    """Read a study file.

    Relative paths of inputs (data.path, bank.file, encoder.model, randomness.key_file, population.trace,
    training.data.source) are relative to the file; those of results (output, execution.cache) to the working folder.

    Args:
        overrides: "section.key=value" strings, value in YAML.

    Raises:
        StudyError: missing file, broken YAML (with its line), unknown key (the nearest is named), value out of range,
            or a sweep.
    """
    values = read_values(path)
    if "sweep" in values:
        raise StudyError(
            "this file sweeps over several studies",
            where=str(path),
            remedy="use `coalmine run`, or `coalmine audit training` for a section training",
        )
    return build_study(values, overrides, where=str(path))


def read_values(path: Path) -> dict[str, Any]:
    """The sections of a study file, not validated yet.

    Raises:
        StudyError: missing file, or broken YAML (with its line).
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _UniqueKeys)
    except FileNotFoundError:
        raise StudyError("there is no such file", where=str(path), remedy="`coalmine init` writes one") from None
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"cannot be read: {error}", where=str(path)) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # dates and numbers can be malformed too
        mark = getattr(error, "problem_mark", None)
        where = f"{path}, line {mark.line + 1}" if mark else str(path)
        raise StudyError(f"not valid YAML: {getattr(error, 'problem', error)}", where=where) from None
    if content is not None and not isinstance(content, dict):
        raise StudyError("a study is a mapping of sections", where=str(path), remedy="see `coalmine init`")
    values = {key: section for key, section in (content or {}).items() if section is not None}
    for key in _INPUTS:
        anchor(values, key, path.parent)
    if isinstance(values.get("training"), dict):
        values["training"] = anchored(values["training"], path.parent)
    return values


def set_key(values: dict[str, Any], key: str, value: Any, where: str) -> None:
    """Set a dotted key, e.g. privacy.sigma.

    Raises:
        StudyError: not a key, or a key below something that is no section.
    """
    if not re.fullmatch(r"[a-z_]+(\.[a-z_]+)*", key):
        raise StudyError(f"{key!r} is not a key", where=where, remedy="keys have the form section.key")
    *sections, last = key.split(".")
    for section in sections:
        inner = values.setdefault(section, {})
        if not isinstance(inner, dict):
            raise StudyError(f"{section!r} is not a section", where=where)
        values = inner
    values[last] = value


def build_study(values: dict[str, Any], overrides: Sequence[str] = (), *, where: str = "study") -> Study:
    """Validate a study given as a mapping; see ``read_study``."""
    for override in overrides:
        _apply(values, override)
    try:
        return Study.model_validate(values)
    except ValidationError as error:
        raise _explain(error, where) from None


def anchor(values: dict[str, Any], key: str, folder: Path) -> None:
    """Make an input's path relative to ``folder``; any other key stays as it is."""
    name, _, last = key.partition(".")
    section = values.get(name)
    if key not in _INPUTS or not isinstance(section, dict) or not isinstance(section.get(last), str):
        return
    local = folder / section[last]
    may_be_a_name = key == "encoder.model" or section.get("source") == "huggingface"
    if local.exists() or not may_be_a_name:
        section[last] = str(local)


def _apply(values: dict[str, Any], override: str) -> None:
    key, equals, value = override.partition("=")
    where = f"--set {override}"
    if not equals:
        raise StudyError("an override has the form section.key=value", where=where)
    try:
        parsed = yaml.safe_load(value)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise StudyError("the value is not valid YAML", where=where) from None
    set_key(values, key, parsed, where)


def _explain(error: ValidationError, where: str) -> StudyError:
    """The first mistake, in the words of the study file."""
    first = error.errors(include_url=False)[0]
    location = tuple(str(part) for part in first["loc"])
    key = ".".join(location)
    more = f"; {error.error_count() - 1} more" if error.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        return StudyError(
            f"unknown key {key!r}{more}", where=where, remedy=nearest(location[-1], _known(location[:-1]))
        )
    cause = first.get("ctx", {}).get("error")
    message = str(cause) if cause is not None else first["msg"]
    given = f", got {first['input']!r}" if isinstance(first["input"], str | int | float | bool) else ""
    return StudyError(f"{key}: {message}{given}{more}" if key else f"{message}{more}", where=where)


def _known(path: Iterable[str]) -> list[str]:
    model: Any = Study
    for part in path:
        field = model.model_fields.get(part)
        kinds = get_args(field.annotation) or (field.annotation,) if field else ()
        model = next((kind for kind in kinds if hasattr(kind, "model_fields")), None)  # an optional section is one too
        if model is None:
            return []
    return list(model.model_fields)
