"""Where a federated run stands at the server: everything that its next round needs, on disk for ``resume``.

All of it but ``gone`` is noised or public. Random streams are keyed by step, so there is no generator to keep; the
accountant is the number of steps.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.dpsgd.optimiser import State
from coalmine.protocol.errors import StorageError

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
                np.savez(file, **arrays)
            part.replace(path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise StorageError("the checkpoint cannot be written", where=str(path), remedy="free space") from error

    @classmethod
    def load(cls, path: Path) -> Standing:
        """A saved checkpoint.

        Raises:
            StorageError: it is not there or damaged.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                moments = tuple(file[name] for name in sorted(file.files) if name.startswith("moment_"))
                count = sum(name.endswith("_step") for name in file.files)
                return cls(
                    int(file["step"]),
                    file["theta"],
                    State(moments, int(file["optimiser_steps"])),
                    file["updates"],
                    tuple(
                        Filtering(
                            int(file[f"past_{number}_step"]),
                            *(file[f"past_{number}_{name}"] for name in ("theta", "updates", "gone")),
                        )
                        for number in range(count)
                    ),
                    {int(client): int(steps) for client, steps in file["spent"]},
                )
        except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise StorageError(
                "this is not a readable checkpoint", where=str(path), remedy="start the run anew"
            ) from error
