"""The samples of a training study: private ones, public ones, and a public test set."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from coalmine.clients.training import built_in, images, table_files
from coalmine.clients.training.table import Table
from coalmine.protocol.errors import DataError, StudyError, nearest
from coalmine.protocol.randomness import Purpose, stream

BUILT_IN = ("digits", "coloured-digits", "purchases")
_EVERY_FIFTH = 5


@dataclass(frozen=True)
class SourceSpec:
    """Where samples come from, in values that a flat settings file can hold.

    Attributes:
        source: a built-in ("digits", "coloured-digits", "purchases") or the path of an npz or Parquet file. A file with
            parts "train" and "test" keeps them apart; of any other, a fifth is for testing.
        train, public: samples of each kind, disjoint and at random; 0 for train: all that are left. Public samples play
            no part in the claim.
        test: samples for accuracy, 0: all.
        minority: of the coloured digits. rows: of the purchases.
        pool: side of the squares over which images are averaged. scale: largest value of a file's images, 0: no images.
        standardise: by mean and deviation of the *public* samples, where there are any.
        seed: which samples are which.

    Raises:
        StudyError: a number that is not finite, or a negative scale.
    """

    source: str = "digits"
    train: int = 0
    public: int = 0
    test: int = 0
    minority: float = 0.1
    rows: int = 4000
    pool: int = 1
    scale: float = 0.0
    standardise: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        for key, value in (("minority", self.minority), ("scale", self.scale)):
            if not 0 <= value < math.inf:
                raise StudyError(
                    f"{value!r} is not allowed", where=f"training.data.{key}", remedy="needs a finite number >= 0"
                )


@dataclass(frozen=True, eq=False)
class Samples:
    """Disjoint tables of one kind of samples."""

    train: Table
    public: Table
    test: Table


def samples(spec: SourceSpec) -> Samples:
    """Read or make the samples. The same spec gives the same samples in the same order.

    Raises:
        DataError: an unknown source, an unreadable file, training and test samples of different shapes, or more samples
            wanted than there are.
    """
    rest, held_out = _read(spec)
    rng = stream(spec.seed, Purpose.SPLIT)
    if held_out is None:
        order = rng.permutation(len(rest))
        cut = len(rest) // _EVERY_FIFTH
        rest, held_out = rest.take(np.sort(order[cut:])), rest.take(np.sort(order[:cut]))
    order = rng.permutation(len(rest))
    train = spec.train or len(rest) - spec.public
    if min(train, spec.public, spec.test) < 0 or train < 1 or train + spec.public > len(rest):
        raise DataError(
            f"{train} private and {spec.public} public samples of {len(rest)}",
            where="training.data",
            remedy="lower data.train or data.public",
        )
    if spec.test > len(held_out):
        raise DataError(f"{spec.test} test samples of {len(held_out)}", where="training.data", remedy="lower data.test")
    parts = [
        rest.take(order[spec.public : spec.public + train]),
        rest.take(order[: spec.public]),
        held_out.take(rng.permutation(len(held_out))[: spec.test or None]),
    ]
    if spec.pool > 1:
        parts = [images.average_pooled(part, spec.pool) for part in parts]
    if spec.standardise and spec.public:
        mean, std = float(parts[1].x.mean(dtype=np.float64)), float(parts[1].x.std(dtype=np.float64))
        parts = [images.standardised(part, mean, std) for part in parts]
    return Samples(*parts)


def _read(spec: SourceSpec) -> tuple[Table, Table | None]:
    match spec.source:
        case "digits":
            return built_in.digits(), None
        case "coloured-digits":
            return built_in.coloured(built_in.digits(), spec.minority, stream(spec.seed, Purpose.DATA)), None
        case "purchases":
            return built_in.purchases(spec.rows, stream(spec.seed, Purpose.DATA)), None
    path = Path(spec.source)
    if path.suffix not in (".npz", ".parquet"):
        kind = f"files of kind {path.suffix!r} are not read" if path.suffix else f"{spec.source!r} is not known"
        raise DataError(
            kind,
            where="training.data.source",
            remedy=f"{nearest(spec.source, BUILT_IN)}; or the path of an .npz or .parquet file",
        )
    if path.suffix == ".npz" and table_files.has_parts(path):
        train, test = (table_files.load(path, part=part) for part in ("train", "test"))
        if train.shape != test.shape:
            raise DataError(
                f"training samples of shape {train.shape} and test samples of shape {test.shape}",
                where=str(path),
                remedy="x_train and x_test need the same features",
            )
        classes = max(train.classes, test.classes)
        both = [replace(part, classes=classes) for part in (train, test)]
        return (both[0], both[1]) if not spec.scale else (_scaled(both[0], spec), _scaled(both[1], spec))
    whole = table_files.load(path)
    return (_scaled(whole, spec) if spec.scale else whole), None


def _scaled(data: Table, spec: SourceSpec) -> Table:
    return images.as_images(data, spec.scale)
