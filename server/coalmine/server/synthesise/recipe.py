"""How a language model is trained and asked. What can change a guarantee is apart from what cannot."""

from __future__ import annotations

from dataclasses import dataclass

from coalmine.protocol.errors import StudyError
from coalmine.protocol.privacy import PrivacyUnit


@dataclass(frozen=True)
class Shape:
    """The network that is trained from scratch: at most 2 million parameters with the defaults' vocabulary.

    Attributes:
        vocabulary: word pieces, the 256 bytes included.
        context: pieces of prompt and text together; longer records are cut.
        width, layers, heads: of the transformer; width is a multiple of heads.
    """

    vocabulary: int = 1024
    context: int = 96
    width: int = 128
    layers: int = 3
    heads: int = 4

    def __post_init__(self) -> None:
        _positive("model", vocabulary=self.vocabulary - 255, context=self.context - 7, width=self.width)
        _positive("model", layers=self.layers, heads=self.heads)
        if self.width % self.heads:
            raise StudyError(f"a width of {self.width}", where="model.width", remedy=f"a multiple of {self.heads}")


@dataclass(frozen=True)
class Schedule:
    """Ordinary training: no guarantee depends on it.

    Attributes:
        epochs: passes over the records. batch: records per step. learning_rate: of AdamW, falling to a tenth.
    """

    epochs: int = 10
    batch: int = 32
    learning_rate: float = 2e-3

    def __post_init__(self) -> None:
        _positive("training", epochs=self.epochs, batch=self.batch, learning_rate=self.learning_rate)


@dataclass(frozen=True)
class Budget:
    """DP-SGD: everything here can change the guarantee.

    Attributes:
        epsilon, delta: of the whole training, add/remove adjacency; epsilon in [0.05, 100].
        unit: whose presence is protected. USER: one gradient for all records of a user; RECORD: one for each.
        steps: noisy steps.
        batch: expected users (or records) per step, drawn by Poisson sampling.
        clip: L2 bound on the gradient of one user (or record), > 0.
        max_records: USER: records of a drawn user that take part in a step, chosen at random; the cap bounds time
            only, since the user's gradient is clipped as one.
        learning_rate: of Adam. Noise moves every weight by about this much a step, so a large one undoes the warm-up.
    """

    epsilon: float = 10.0
    delta: float = 1e-5
    unit: PrivacyUnit = PrivacyUnit.USER
    steps: int = 100
    batch: int = 32
    clip: float = 1.0
    max_records: int = 2
    learning_rate: float = 3e-4

    def __post_init__(self) -> None:
        _positive("dp", steps=self.steps, batch=self.batch, clip=self.clip, max_records=self.max_records)
        _positive("dp", learning_rate=self.learning_rate)
        if not 0.05 <= self.epsilon <= 100:
            raise StudyError(f"an epsilon of {self.epsilon!r}", where="epsilon", remedy="a number in [0.05, 100]")
        if not 0 < self.delta < 1:
            raise StudyError(f"a delta of {self.delta!r}", where="delta", remedy="a probability in (0, 1)")


@dataclass(frozen=True)
class Asking:
    """How texts are drawn from a trained model: post-processing, no guarantee depends on it.

    Attributes:
        temperature: > 0; 1 samples from the model itself. longest: pieces of a text, cut there.
    """

    temperature: float = 1.0
    longest: int = 80

    def __post_init__(self) -> None:
        _positive("sampling", temperature=self.temperature, longest=self.longest)


def _positive(where: str, **numbers: float) -> None:
    for name, number in numbers.items():
        if not number > 0:
            raise StudyError(f"{name} is too small", where=f"{where}.{name}", remedy="a larger number")
