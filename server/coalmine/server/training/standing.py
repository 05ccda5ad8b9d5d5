"""Where a federated run stands at the server: everything that its next round needs, on disk for ``resume``.

All of it but ``gone`` is noised or public. Random streams are keyed by step, so there is no generator to keep; the
accountant is the number of steps.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.dpsgd.optimiser import State
from coalmine.protocol.errors import StorageError
from coalmine.protocol.sealed import Arrays, sealed, unsealed

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Filtering:
    """One filtering of the past: what a client needs to repeat it.

    Attributes:
        step: before which it was. theta: (P,) parameters then. updates: (w, P) noised gradients then.
        gone: ids that it dropped, known with scope ``federation`` only; private to the server.
    """

    step: int
    theta: Array
    updates: Array
    gone: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Standing:
    """After ``step`` steps.

    Attributes:
        theta: (P,) parameters. optimiser: its moments. updates: (w, P) latest noised gradients, oldest first.
        past: filterings so far, in order. spent: local mode, steps of each client's accountant by its number.
    """

    step: int
    theta: Array
    optimiser: State = field(default_factory=State)
    updates: Array = field(default_factory=lambda: np.zeros((0, 0)))
    past: tuple[Filtering, ...] = ()
    spent: dict[int, int] = field(default_factory=dict)

    def after(self, theta: Array, optimiser: State, update: Array, window: int) -> Standing:
        """One step on; keeps the last ``window`` updates."""
        before = self.updates.reshape(-1, len(theta))
        kept = np.concatenate([before, update[None]])[-window:] if window else np.zeros((0, len(theta)))
        return replace(self, step=self.step + 1, theta=theta, optimiser=optimiser, updates=kept)

    def filtered(self, gone: NDArray[np.int64]) -> Standing:
        """With a filtering at this point."""
        return replace(self, past=(*self.past, Filtering(self.step, self.theta, self.updates, gone)))

    def save(self, path: Path) -> None:
        """A checkpoint that only its owner can read, complete or not there.

        Raises:
            StorageError: it cannot be written.
        """
        arrays = {
            "step": np.array(self.step),
            "theta": self.theta,
            "optimiser_steps": np.array(self.optimiser.steps),
            "updates": self.updates,
            "spent": np.array(sorted(self.spent.items()), np.int64).reshape(-1, 2),
            **{f"moment_{number}": moment for number, moment in enumerate(self.optimiser.moments)},
        }
        for number, one in enumerate(self.past):
            arrays |= {
                f"past_{number}_{name}": np.asarray(getattr(one, name)) for name in ("step", "theta", "updates", "gone")
            }
        part = path.with_name(path.name + ".part")
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(sealed(arrays))
            part.replace(path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise StorageError("the checkpoint cannot be written", where=str(path), remedy="free space") from error

    @classmethod
    def load(cls, path: Path) -> Standing:
        """A saved checkpoint.

        Raises:
            StorageError: it is not there, or not what was saved.
        """
        file = unsealed(path.read_bytes, "the checkpoint", str(path), "start the run anew")
        moments = tuple(file[name].astype(np.float64) for name in sorted(file) if name.startswith("moment_"))
        count = sum(name.endswith("_step") for name in file)
        return cls(
            int(file["step"]),
            file["theta"].astype(np.float64),
            State(moments, int(file["optimiser_steps"])),
            file["updates"].astype(np.float64),
            tuple(_past(file, f"past_{number}") for number in range(count)),
            {int(client): int(steps) for client, steps in file["spent"]},
        )


def _past(file: Arrays, name: str) -> Filtering:
    return Filtering(
        int(file[f"{name}_step"]),
        file[f"{name}_theta"].astype(np.float64),
        file[f"{name}_updates"].astype(np.float64),
        file[f"{name}_gone"].astype(np.int64),
    )
