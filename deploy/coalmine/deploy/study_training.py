"""The section of a study about federated DP-SGD, and the flat settings that the Flower apps read.

All of ``training`` can change the guarantee or the result, but ``checkpoint_every``, ``models_at_once`` and ``double``.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from coalmine.deploy.study_section import Count, Section
from coalmine.protocol.errors import StudyError

if TYPE_CHECKING:
    from coalmine.protocol.dpsgd.schedule import FilterSchedule
    from coalmine.protocol.dpsgd.terms import Terms

Canary = Literal["blank", "mislabeled", "fgsm", "clipbkd", "interpolated", "sparse", "defence_aware"]


_Many = Annotated[int, Field(ge=1, le=1_000_000)]
_MOST_PARAMETERS = 10**8


class SamplesSection(Section):
    """Labelled samples: private ones for training, public ones, and a public test set; disjoint, at random."""

    source: str = Field("digits", description="digits, coloured-digits, purchases; or an .npz or .parquet file")
    train: Count = Field(1000, description="private samples")
    public: int = Field(0, ge=0, le=10**9, description="public samples, for pre-training and for crafting canaries")
    test: int = Field(0, ge=0, le=10**9, description="0: all that are held out")
    minority: float = Field(0.1, ge=0, le=0.5, description="coloured-digits: share in the other colour")
    rows: _Many = Field(4000, description="purchases: how many to generate")
    pool: Count = Field(1, description="images: average over squares of this side")
    scale: float = Field(0.0, ge=0, description="files of images: their largest value; 0: features as they are")
    standardise: bool = Field(True, description="by mean and deviation of the public samples, where there are any")


class ModelSection(Section):
    """Which network."""

    kind: Literal["logistic", "mlp", "cnn", "wrn16"] = "mlp"
    hidden: tuple[_Many, ...] = Field((32,), description="mlp: widths of its hidden layers")
    activation: Literal["tanh", "relu"] = "tanh"
    width: int = Field(16, ge=1, le=1024)
    pretrain: int = Field(
        0, ge=0, le=1_000_000, description="steps of ordinary SGD on the public samples before the run"
    )
    pretrain_lr: float = Field(0.3, gt=0)

    @model_validator(mode="after")
    def _fits_memory(self) -> ModelSection:
        where = "training.model.hidden"
        if self.kind == "mlp" and not self.hidden:
            raise StudyError("no hidden layer", where=where, remedy="give widths, or use kind logistic")
        weights = sum(self.hidden) + sum(before * after for before, after in pairwise(self.hidden))
        if weights > _MOST_PARAMETERS:
            raise StudyError(
                f"{weights:,} parameters", where=where, remedy=f"needs at most {_MOST_PARAMETERS:,}: narrow the layers"
            )
        return self


class PartitionSection(Section):
    """Who holds which samples."""

    kind: Literal["iid", "dirichlet", "class", "user"] = "iid"
    alpha: float = Field(1.0, gt=0, description="dirichlet: small is skewed")
    classes: Count = Field(1, description="class: of each client")
    allow_empty: bool = Field(False, description="dirichlet: clients without a sample")


class FilterSection(Section):
    """The filter's public schedule."""

    k: Count = 1
    reach: Literal["per class", "global"] = "per class"
    every: Count = 1
    first_epoch: int = Field(0, ge=0, le=10**9)
    last_epoch: int | None = Field(4, ge=0, le=10**9, description="none: the whole run")
    signature: str = "grad_l2"
    window: Count = 10
    directions: Count = 16
    force: bool = Field(False, description="although it can drop more than half of the declared size")

    @model_validator(mode="before")
    @classmethod
    def _public(cls, values: Any) -> Any:
        """Say why a key that counts samples is refused, not only that it is unknown."""
        if isinstance(values, dict):
            from coalmine.protocol.dpsgd.schedule import FilterSchedule

            FilterSchedule.from_settings({key: value for key, value in values.items() if key != "force"})
        return values

    def schedule(self) -> FilterSchedule:
        from coalmine.protocol.dpsgd.schedule import FilterSchedule

        return FilterSchedule.from_settings(self.model_dump(exclude={"force"}))


class ManyCanariesSection(Section):
    """The one-run audit: many canaries, each in on a coin of its own."""

    canaries: _Many = 500
    kind: Literal["sparse", "mislabeled"] = "sparse"
    guesses: tuple[int, int] = Field((75, 75), description="how many are said to be in, and out: fixed beforehand")

    @model_validator(mode="after")
    def _guessable(self) -> ManyCanariesSection:
        if min(self.guesses) < 0 or not 1 <= sum(self.guesses) <= self.canaries:
            raise ValueError(f"{sum(self.guesses)} guesses on {self.canaries} canaries")
        return self


class LabelOnlySection(Section):
    """The attacker sees predicted labels alone: SGD, HAMP, DP-SGD and its filter side by side."""

    canaries: _Many = Field(200, description="mislabeled samples, each in about half of the models")
    models: int = Field(64, ge=10, le=1_000_000, description="of each defence")
    views: int = Field(
        18, ge=1, le=10_000, description="of a canary, whose labels are asked; the first is the sample as it is"
    )
    shift: int = Field(1, ge=0, le=1000, description="largest shift of a view in pixels, where samples are images")
    jitter: float = Field(0.1, ge=0, le=1e6, description="deviation of the noise on a view's features")
    hamp_gamma: float = Field(0.5, ge=0, le=1, description="HAMP: least entropy of a soft label, share of the largest")
    hamp_alpha: float = Field(0.01, ge=0, le=1e6, description="HAMP: weight of the prediction's entropy")


class DisparateSection(Section):
    """Dropped samples and accuracy by subgroup."""

    models: int = Field(32, ge=2, le=1_000_000, description="with and without the filter, each")
    minority: tuple[Annotated[float, Field(gt=0, le=0.5)], ...] = Field(
        (), description="coloured-digits: shares to try instead of data.minority"
    )


class ShadowSection(Section):
    """`coalmine audit training`: shadow models with and without a canary, with and without the filter."""

    canaries: tuple[Canary, ...] = ("blank", "mislabeled", "clipbkd")
    models: int = Field(
        200, ge=20, le=1_000_000, description="with each canary, and without any; these are shared among canaries"
    )
    repetitions: int = Field(1, ge=1, le=10_000, description="of everything, on other seeds")
    alpha: float = Field(0.05, gt=0, lt=1, description="failure probability of each bound")
    sampling: Literal["poisson", "shuffled"] = Field(
        "poisson",
        description="of shadow models' batches; shuffled: the claim is heuristic, `coalmine train` never does it",
    )
    interpolation: float = Field(0.5, ge=0, le=1, description="interpolated: between blank (0) and mislabeled (1)")
    unfiltered: bool = Field(True, description="also audit the same run without its filter")
    random_start: bool = Field(False, description="also the accuracy of both from a random start, without pre-training")
    one_run: ManyCanariesSection | None = None
    group: int = Field(
        0, ge=0, le=1_000_000, description="members of a group in gradient space, just below the filter; 0: none"
    )
    onion: bool = Field(False, description="every other sample guesses each canary's presence, with and without filter")
    white_box: bool = Field(False, description="a gradient canary and all noised updates: the score's exact epsilon")
    label_only: LabelOnlySection | None = None
    disparate: DisparateSection | None = Field(None, description="needs data with subgroups, such as coloured-digits")

    @model_validator(mode="after")
    def _distinct(self) -> ShadowSection:
        if not self.canaries and not any((self.one_run, self.group, self.white_box, self.label_only, self.disparate)):
            raise ValueError(
                "nothing is audited: name canaries, or give one_run, group, white_box, label_only or disparate"
            )
        if self.onion and not self.canaries:
            raise ValueError("onion asks about canaries: name some")
        if len(set(self.canaries)) != len(self.canaries):
            raise ValueError("a canary is named twice")
        if self.sampling == "shuffled" and any((self.one_run, self.white_box, self.label_only)):
            raise ValueError("one_run, white_box and label_only rest on Poisson batches: leave them out, or shuffled")
        return self


class TrainingSection(Section):
    """Federated DP-SGD (`coalmine train`), and its audit (`coalmine audit training`). Seed: the study's."""

    mode: Literal["gradient", "local"] = Field(
        "gradient",
        description="gradient: central DP-SGD, a round a step; local: Opacus at each client, averaged models",
    )
    clients: int = Field(10, ge=1, le=100_000)
    q: float = Field(0.1, description="chance of a sample to be in a step's batch")
    sigma: float | None = Field(None, description="noise multiplier; or give eps")
    eps: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="claim to reach (PRV): the least sigma that keeps it"
    )
    clip: float = 1.0
    delta: float = 1e-5
    declared_size: Count | None = Field(None, description="public size of the data; none: data.train")
    steps: _Many = 300
    optimiser: Literal["sgd", "adam"] = "sgd"
    lr: float = 0.3
    momentum: float = 0.0
    local_steps: Count = Field(1, description="local: noised steps of a round")
    scope: Literal["client", "federation"] = Field(
        "client", description="of the filter; federation: top k over all, the server sees ids, labels and signatures"
    )
    data: SamplesSection = SamplesSection()
    model: ModelSection = ModelSection()
    partition: PartitionSection = PartitionSection()
    filter: FilterSection | None = None
    audit: ShadowSection = ShadowSection()
    double: bool = Field(True, description="gradients of `coalmine train` in float64; shadow models use float32")
    checkpoint_every: Count = 25
    models_at_once: _Many = Field(16, description="shadow models in one pass; the same numbers whatever the workers")

    @model_validator(mode="before")
    @classmethod
    def _moved(cls, values: Any) -> Any:
        if isinstance(values, dict) and "dropout" in values:
            raise StudyError("this key has moved", where="training.dropout", remedy="use population.dropout")
        return values

    @model_validator(mode="after")
    def _fits(self) -> TrainingSection:
        if (self.sigma is None) == (self.eps is None):
            raise ValueError("give one of sigma and eps")
        if self.model.pretrain and not self.data.public:
            raise ValueError("model.pretrain needs data.public samples")
        if self.sigma is not None:
            self.terms(0)
            _accountable(self.sigma)
        else:
            _checked(self.q, self.clip, self.delta, self.declared_size or self.data.train)
        return self

    def settings(self, seed: int) -> dict[str, str | int | float | bool]:
        """What the apps read, but the population. Finds the noise where ``eps`` is given, which takes seconds."""
        plain = ("mode", "clients", "q", "clip", "delta", "steps", "optimiser", "lr", "momentum", "local_steps")
        found: dict[str, Any] = {key: getattr(self, key) for key in (*plain, "scope", "double")}
        found |= {
            "seed": seed,
            "sigma": self.noise(),
            "declared_size": self.declared_size or self.data.train,
            "universe": self.data.train,
            "checkpoint_every": self.checkpoint_every,
            "filter.on": self.filter is not None,
        }
        found |= {f"data.{key}": value for key, value in self.data.model_dump().items()}
        found |= {f"partition.{key}": value for key, value in self.partition.model_dump().items()}
        for key in ("kind", "activation", "width"):
            found[f"model.{key}"] = getattr(self.model, key)
        found["model.hidden"] = ",".join(map(str, self.model.hidden))
        if self.filter is not None:
            rule = self.filter.model_dump(exclude={"force"})
            found |= {f"filter.{key}": -1 if value is None else value for key, value in rule.items()}
        return found

    def terms(self, seed: int) -> Terms:
        """Checked like the apps check them."""
        from coalmine.protocol.dpsgd.terms import terms

        return terms(self.settings(seed))

    def noise(self) -> float:
        """The noise multiplier."""
        if self.sigma is not None:
            return self.sigma
        assert self.eps is not None
        try:
            return _noise(self.eps, self.q, self.steps, self.delta)
        except StudyError as error:
            if error.where != "eps":
                raise
            raise StudyError(error.what, where="training.eps", remedy=error.remedy) from None

    def largest_drop(self, seed: int, classes: int) -> int:
        """The most samples that the filter can take, from public numbers."""
        agreed = self.terms(seed)
        if agreed.filter is None:
            return 0
        alone = self.clients if self.scope == "client" else 1
        return agreed.filter.largest_drop(self.steps, self.q, classes, alone)


def _accountable(sigma: float) -> None:
    """Training ends with its claim, and there would be none."""
    from coalmine.protocol.accounting import LEAST_ACCOUNTED

    if sigma < LEAST_ACCOUNTED:
        raise StudyError(
            f"{sigma!r} is too little noise to account for",
            where="training.sigma",
            remedy=f"needs at least {LEAST_ACCOUNTED}",
        )


def _checked(q: float, clip: float, delta: float, declared_size: int) -> None:
    """Before the noise is sought, which takes seconds."""
    from coalmine.protocol.dpsgd.mechanism import DpSgd

    DpSgd(q, 1.0, clip, delta, declared_size)


@cache
def _noise(eps: float, q: float, steps: int, delta: float) -> float:
    from coalmine.protocol.dpsgd.claims import noise_multiplier

    return noise_multiplier(eps, q, steps, delta)


def anchored(section: dict[str, Any], folder: Path) -> dict[str, Any]:
    """With ``data.source`` relative to the study's file, where such a file is there."""
    data = section.get("data")
    if isinstance(data, dict) and isinstance(data.get("source"), str) and (folder / data["source"]).is_file():
        return {**section, "data": {**data, "source": str((folder / data["source"]).resolve())}}
    return section
