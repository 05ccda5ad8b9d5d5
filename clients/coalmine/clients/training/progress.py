"""Where the training of many models stands: everything the next step needs. Random streams are keyed by step."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.dpsgd.optimiser import State
from coalmine.protocol.errors import StorageError
from coalmine.protocol.sealed import sealed, unsealed

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Progress:
    """After ``step`` noised updates. Private to the trainer: it knows who is a member and who was dropped.

    Attributes:
        step: updates taken, empty batches included; what the claim is computed from.
        theta: (R, P) parameters, float64 whatever the arithmetic of gradients.
        optimiser: its moments, (R, P) each.
        active: (R, n) members not dropped so far.
        dropped: (R, n) epoch in which a sample was dropped, -1 for never.
        updates: (w, R, P) latest noised gradients, oldest first, as many as the filter's signature looks at.
    """

    step: int
    theta: Array
    optimiser: State
    active: NDArray[np.bool_]
    dropped: NDArray[np.int32]
    updates: Array

    @classmethod
    def beginning(cls, theta: Array, members: NDArray[np.bool_]) -> Progress:
        never = np.full(members.shape, -1, np.int32)
        return cls(0, theta.copy(), State(), members.copy(), never, np.zeros((0, *theta.shape)))

    def after(self, theta: Array, optimiser: State, update: Array, window: int) -> Progress:
        """One step on; keeps the last ``window`` updates."""
        kept = np.concatenate([self.updates, update[None]])[-window:] if window else self.updates
        return replace(self, step=self.step + 1, theta=theta, optimiser=optimiser, updates=kept)

    def without(self, gone: NDArray[np.bool_], epoch: int) -> Progress:
        """(R, n) samples leave."""
        return replace(
            self,
            active=self.active & ~gone,
            dropped=np.where(gone, np.int32(epoch), self.dropped).astype(np.int32),
        )

    def save(self, path: Path) -> None:
        """A checkpoint that only its owner can read, complete or not there.

        Raises:
            StorageError: it cannot be written.
        """
        part = path.with_name(path.name + ".part")
        arrays = {
            "step": np.array(self.step),
            "theta": self.theta,
            "optimiser_steps": np.array(self.optimiser.steps),
            "active": self.active,
            "dropped": self.dropped,
            "updates": self.updates,
            **{f"moment_{number}": moment for number, moment in enumerate(self.optimiser.moments)},
        }
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(sealed(arrays))
            part.replace(path)
        except OSError as error:
            raise StorageError("the checkpoint cannot be written", where=str(path), remedy="free space") from error

    @classmethod
    def load(cls, path: Path) -> Progress:
        """A saved checkpoint.

        Raises:
            StorageError: it is not there, or not what was saved.
        """
        file = unsealed(path.read_bytes, "the checkpoint", str(path), "start the run anew")
        moments = tuple(file[name].astype(np.float64) for name in sorted(file) if name.startswith("moment_"))
        return cls(
            int(file["step"]),
            file["theta"].astype(np.float64),
            State(moments, int(file["optimiser_steps"])),
            file["active"].astype(np.bool_),
            file["dropped"].astype(np.int32),
            file["updates"].astype(np.float64),
        )
