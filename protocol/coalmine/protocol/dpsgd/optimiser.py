"""What is done with a noised gradient. All of it is post-processing: no optimiser touches the guarantee.

The arrays may be NumPy's or torch's, of any shape: only arithmetic is used, so that a server and a fast trainer step
in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from coalmine.protocol.errors import StudyError

Array = Any
"""NumPy's or torch's, of any shape."""


@dataclass(frozen=True)
class State:
    """Moments of past noised gradients: as many arrays as the optimiser keeps, and the number of steps taken."""

    moments: tuple[Array, ...] = ()
    steps: int = 0


class Optimiser(Protocol):
    """A step from (parameters, noised gradient, state) to (parameters, state). The first state is ``State()``."""

    def step(self, parameters: Array, gradient: Array, state: State) -> tuple[Array, State]: ...


@dataclass(frozen=True)
class Sgd:
    """``theta - lr * g``; with ``momentum`` > 0 ``v = momentum * v + g`` and ``theta - lr * v``.

    Raises:
        StudyError: a value out of its range.
    """

    lr: float
    momentum: float = 0.0

    def __post_init__(self) -> None:
        _require_rate(self.lr)
        _require_decay("training.momentum", self.momentum)

    def step(self, parameters: Array, gradient: Array, state: State) -> tuple[Array, State]:
        if self.momentum == 0:
            return parameters - self.lr * gradient, State((), state.steps + 1)
        velocity = self.momentum * state.moments[0] + gradient if state.moments else gradient
        return parameters - self.lr * velocity, State((velocity,), state.steps + 1)


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma and Ba 2015, Algorithm 1) on the noised gradient.

    Raises:
        StudyError: a value out of its range.
    """

    lr: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        _require_rate(self.lr)
        _require_decay("training.beta1", self.beta1)
        _require_decay("training.beta2", self.beta2)
        if not self.epsilon > 0:
            raise StudyError(f"{self.epsilon!r} is not allowed", where="training.epsilon", remedy="needs a number > 0")

    def step(self, parameters: Array, gradient: Array, state: State) -> tuple[Array, State]:
        first, second = state.moments if state.moments else (0.0 * gradient, 0.0 * gradient)
        first = self.beta1 * first + (1 - self.beta1) * gradient
        second = self.beta2 * second + (1 - self.beta2) * gradient * gradient
        steps = state.steps + 1
        mean, square = first / (1 - self.beta1**steps), second / (1 - self.beta2**steps)
        return parameters - self.lr * mean / (square**0.5 + self.epsilon), State((first, second), steps)


def _require_rate(lr: float) -> None:
    if not 0 < lr < float("inf"):
        raise StudyError(f"{lr!r} is not allowed", where="training.lr", remedy="needs a learning rate > 0")


def _require_decay(key: str, value: float) -> None:
    if not 0 <= value < 1:
        raise StudyError(f"{value!r} is not allowed", where=key, remedy="needs a number in [0, 1)")
