"""Which network is trained. A specification alone; ``fast`` builds and trains it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from coalmine.protocol.errors import ModelError


class Kind(StrEnum):
    """LOGISTIC: one linear layer; on text embeddings it is the classifier on embeddings.
    MLP: hidden layers with tanh or relu; on text embeddings likewise.
    CNN: two convolutions and two linear layers; 26,010 parameters on (1, 28, 28) images with ten classes.
    WRN16: WideResNet-16 with group norm (De et al. 2022); through Opacus.
    """

    LOGISTIC = "logistic"
    MLP = "mlp"
    CNN = "cnn"
    WRN16 = "wrn16"


class Activation(StrEnum):
    RELU = "relu"
    TANH = "tanh"


@dataclass(frozen=True)
class ModelSpec:
    """A network for samples of one shape.

    Attributes:
        shape: of one sample: (d,) or (channels, height, width). classes: >= 2.
        hidden: widths of the MLP's hidden layers. activation: between layers.
        width: channels of the CNN's first convolution (the second has twice as many), or WRN's widening factor.

    Raises:
        ModelError: a value out of its range, or samples this kind of network cannot read.
    """

    kind: Kind
    shape: tuple[int, ...]
    classes: int
    hidden: tuple[int, ...] = (32,)
    activation: Activation = Activation.TANH
    width: int = 16

    def __post_init__(self) -> None:
        if self.classes < 2:
            raise ModelError(f"{self.classes} classes", where="model", remedy="needs two or more")
        if not self.shape or min(self.shape) < 1:
            raise ModelError(f"samples of shape {self.shape}", where="model", remedy="needs at least one feature")
        if self.kind is Kind.MLP and (not self.hidden or min(self.hidden) < 1):
            raise ModelError(f"hidden layers {self.hidden}", where="model.hidden", remedy="needs widths >= 1")
        if self.kind in (Kind.CNN, Kind.WRN16):
            if len(self.shape) != 3:
                raise ModelError(
                    f"samples of shape {self.shape} are no images",
                    where=f"model.kind = {self.kind}",
                    remedy="needs (channels, height, width); use mlp for vectors",
                )
            if self.width < 1:
                raise ModelError(f"a width of {self.width}", where="model.width", remedy="needs 1 or more")
            least = 8
            if min(self.shape[1:]) < least:
                raise ModelError(
                    f"images of {self.shape[1]} x {self.shape[2]}", where="model", remedy=f"needs sides >= {least}"
                )
