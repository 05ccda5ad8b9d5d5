"""A study: one configured experiment, every key checked.

Knobs that can change a guarantee live under ``privacy``, ``noise`` and ``randomness``; knobs that cannot live under
``execution``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from coalmine.deploy.study_population import NoiseSection, PopulationSection
from coalmine.deploy.study_section import Count, Section
from coalmine.deploy.study_training import TrainingSection
from coalmine.protocol.privacy import Mechanism, ThreatModel

if TYPE_CHECKING:
    from coalmine.protocol.noise import SharedNoise

AttackName = Literal[
    "ordinary", "exact", "paraphrase", "paraphrase-norm", "paraphrase-mu", "nonce", "nonce-norm", "nonce-mu"
]


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
    source: Literal["labels", "auxiliary"] = Field(
        "labels", description="labels: generated from public labels; auxiliary: records of the auxiliary users"
    )
    file: Path | None = Field(None, description="a bank written by `coalmine bank build`, instead of generating one")


class PrivacySection(Section):
    """The mechanism: everything here can change the guarantee."""

    q: float = Mechanism.q
    sigma: float = Mechanism.sigma
    clip: float = Mechanism.clip
    delta: float = Mechanism.delta
    votes_per_record: int = Mechanism.votes_per_record
    max_records: int = Mechanism.max_records
    max_eps: float | None = Field(None, gt=0, description="the budget: a round that would exceed it does not start")

    def mechanism(self) -> Mechanism:
        return Mechanism(**self.model_dump(exclude={"max_eps"}))

    @model_validator(mode="after")
    def _in_range(self) -> PrivacySection:
        self.mechanism()
        return self


class RoundsSection(Section):
    """How often users vote, and how each bank grows from the noisy release of the one before."""

    count: Count = 1
    keep: float = Field(0.05, gt=0, le=1, description="share of each label's candidates that survive a round")
    threshold: float = Field(0.0, ge=0, description="taken off every noisy count before synthetic texts are drawn")
    examples: Count = Field(3, description="survivors that a new candidate is written after")
    output: Count = Field(1000, description="synthetic texts drawn from the survivors of each round")


class UtilitySection(Section):
    """How good the synthetic output is. Compared with auxiliary and calibration users only, who are public."""

    measure: bool = False
    repeats: Count = Field(5, description="seeds of every measurement")


class DisclosuresSection(Section):
    """Is the synthetic output of a round safe to release? Voting users are the training side, calibration users, drawn
    from the same people at random, the held-out side."""

    classes: tuple[Literal["pii", "regurgitation", "semantic"], ...] = Field((), description="none: no such audit")
    alpha: float = Field(0.05, gt=0, lt=1, description="of every bound, and of all verdicts of a round together")


class RandomnessSection(Section):
    """simulated: from the seed, reproducible. protected: a secret key file and the operating system's entropy."""

    kind: Literal["simulated", "protected"] = "simulated"
    key_file: Path | None = None

    @model_validator(mode="after")
    def _key_given(self) -> RandomnessSection:
        if self.kind == "protected" and self.key_file is None:
            raise ValueError("kind 'protected' needs a key_file (it is created, owner-only, where it is missing)")
        return self


class OneRunSection(Section):
    """Many nonce canary users at once, each included on a coin of its own (`coalmine audit one-run`)."""

    canaries: Count = 200
    probes_each: Count = Field(5, description="bank places of each canary; votes_per_record of them take all its votes")
    records: Count = Field(4, description="of each canary")
    guesses: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]] = Field(
        (20, 0), description="how many are said to be in, and out: fixed beforehand (`coalmine calc one-run-plan`)"
    )
    releases: Count = Field(1, description="releases on one bank, all covered by the claim")

    @model_validator(mode="after")
    def _guessable(self) -> OneRunSection:
        if not 1 <= sum(self.guesses) <= self.canaries:
            raise ValueError(f"{sum(self.guesses)} guesses on {self.canaries} canaries")
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
    replicas: int = Field(
        0, ge=0, description="whole adaptive runs per hypothesis of every attack's first canary; 0: none"
    )
    replays: int = Field(64, ge=0, description="real rounds per hypothesis, canary and attack; 0: none")
    one_run: OneRunSection | None = None

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

    @model_validator(mode="after")
    def _usable(self) -> TrackingSection:
        """Before anything is run: the runs would be logged last."""
        if self.mlflow and self.model_fields_set:
            from coalmine.auditor.tracking import Tracking, require_store

            Tracking(self.team, self.uri)
            require_store(self.uri)
        return self


class ExecutionSection(Section):
    """Speed only; nothing here changes a result."""

    workers: int | None = Field(None, ge=1, description="shards and encoder workers; none: one per core")
    cache: Path | None = Field(None, description="embeddings and generated texts; none: the user's cache folder")


class Study(Section):
    """One configured experiment: rounds of Private Evolution, and their audit."""

    study: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] = "study"
    seed: int = Field(0, ge=0)
    output: Path | None = Field(None, description="folder of results; none: runs/<study>")
    data: DataSection = DataSection()
    encoder: EncoderSection = EncoderSection()
    generator: GeneratorSection = GeneratorSection()
    bank: BankSection = BankSection()
    privacy: PrivacySection = PrivacySection()
    rounds: RoundsSection = RoundsSection()
    utility: UtilitySection = UtilitySection()
    disclosures: DisclosuresSection = DisclosuresSection()
    randomness: RandomnessSection = RandomnessSection()
    noise: NoiseSection = NoiseSection()
    population: PopulationSection = PopulationSection()
    audit: AuditSection = AuditSection()
    training: TrainingSection | None = None
    tracking: TrackingSection = TrackingSection()
    execution: ExecutionSection = ExecutionSection()

    @model_validator(mode="after")
    def _bank_holds_probes(self) -> Study:
        if self.audit.probes + self.privacy.votes_per_record > self.bank.size:
            raise ValueError(
                f"a bank of {self.bank.size} cannot hold {self.audit.probes} probes beside"
                f" {self.privacy.votes_per_record} candidates"
            )
        one_run = self.audit.one_run
        if one_run and one_run.canaries * one_run.probes_each + self.privacy.votes_per_record > self.bank.size:
            raise ValueError(
                f"a bank of {self.bank.size} cannot hold {one_run.canaries} x {one_run.probes_each} probes of"
                f" audit.one_run beside {self.privacy.votes_per_record} candidates"
            )
        if one_run and one_run.records > self.privacy.max_records:
            raise ValueError(f"audit.one_run.records ({one_run.records}) exceeds privacy.max_records")
        if self.audit.canary_records > self.privacy.max_records:
            raise ValueError(
                f"audit.canary_records ({self.audit.canary_records}) exceeds privacy.max_records"
                f" ({self.privacy.max_records}): the canary is a user like any other"
            )
        if self.data.min_records > self.privacy.max_records:
            raise ValueError("data.min_records exceeds privacy.max_records")
        return self

    @model_validator(mode="after")
    def _noise_is_modelled(self) -> Study:
        self.sharing()
        if self.noise.aggregator == "untrusted" and self.audit.replays:
            raise ValueError(
                "without a trusted aggregator a release's noise depends on how many survive, which the modelled round"
                " does not: set audit.replays to 0 (exact values and trials use the least noise)"
            )
        return self

    def sharing(self) -> SharedNoise | None:
        """How participants share the noise; ``None``: the aggregator adds all of it."""
        from coalmine.protocol.noise import SharedNoise, most_participants

        if self.noise.survivors is None or self.noise.mode == "central":
            return None
        if self.noise.aggregator == "untrusted":
            return SharedNoise(self.noise.survivors, None)
        eligible = self.data.test + 1  # a canary may be eligible besides
        return SharedNoise(self.noise.survivors, most_participants(eligible, self.privacy.q))

    def carried(self) -> Mechanism:
        """The mechanism with the noise that releases carry, at least what is promised: what an audit models."""
        mechanism, sharing = self.privacy.mechanism(), self.sharing()
        return mechanism if sharing is None else sharing.carried(mechanism)

    @property
    def threat_model(self) -> ThreatModel:
        """What the claim's attacker sees."""
        return ThreatModel.COHORT if self.noise.aggregator == "untrusted" else ThreatModel.RELEASE_ONLY

    @property
    def folder(self) -> Path:
        return self.output or Path("runs") / self.study
