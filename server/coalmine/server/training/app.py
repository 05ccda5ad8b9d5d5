"""Flower's ServerApp of federated DP-SGD: ``flwr run .``, and the same in process for ``coalmine train``.

Besides the terms (``protocol.dpsgd.terms``) the run's settings may name files of the server's machine: ``checkpoint``
(written every ``checkpoint_every`` rounds and at the end; ``resume`` goes on from it), ``start`` (an npz whose array
``theta`` is the beginning) and ``result`` (an npz with the final ``theta``, its steps and its accuracy).
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context
from flwr.serverapp import Grid, ServerApp
from numpy.typing import NDArray

from coalmine.protocol.dpsgd import wire
from coalmine.protocol.dpsgd.terms import Mode, Terms, terms
from coalmine.protocol.errors import ContributionError, StorageError, StudyError
from coalmine.protocol.sealed import NO_NPZ
from coalmine.server.training.attentive import AttentiveGrid
from coalmine.server.training.exchange import arrays, ask, ask_all, content, setting
from coalmine.server.training.standing import Standing
from coalmine.server.training.strategy import Averaging, CentralSteps

app = ServerApp()

MODEL, ACCOUNT = "coalmine-model", "coalmine-account"
_WAIT_SECONDS, _TELL_SECONDS = 600.0, 30.0


@dataclass(frozen=True)
class Account:
    """What a finished run tells.

    Attributes:
        steps: noised steps that one sample was exposed to at most. right, of: public test samples, labelled right.
    """

    steps: int
    right: int
    of: int


def account(context: Context) -> Account:
    """Of a finished run.

    Raises:
        ContributionError: the run has not finished.
    """
    return Account(*(setting(context.state, ACCOUNT, name) for name in ("steps", "right", "of")))


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Wait for all clients, train, leave the model in the context and where ``result`` says.

    Raises:
        StudyError: settings that do not fit.
        ContributionError: a client refuses or is not who it should be.
        StorageError: a file cannot be read or written.
    """
    settings = dict(context.run_config)
    agreed = terms(settings)
    grid = AttentiveGrid(grid)
    nodes, initial = _meet(grid, agreed)
    path = _path(settings, "checkpoint")
    standing = _begin(settings, path, initial)
    every = int(settings.get("checkpoint_every", 25))
    rounds = 0

    def keep(now: Standing) -> None:
        nonlocal rounds
        rounds += 1
        if path is not None and rounds % every == 0:
            now.save(path)

    kind = CentralSteps if agreed.mode is Mode.GRADIENT else Averaging
    strategy = kind(agreed, grid, nodes, standing, keep)
    left = (agreed.steps - standing.step) // agreed.local_steps
    try:
        strategy.start(grid, ArrayRecord([standing.theta]), num_rounds=left)
    finally:
        if path is not None:
            strategy.standing.save(path)
    done = strategy.standing
    context.state[MODEL] = ArrayRecord([done.theta])
    right, of = _accuracy(grid, nodes, done.theta)
    most = max(done.spent.values(), default=0) if agreed.mode is Mode.LOCAL else done.step
    context.state[ACCOUNT] = ConfigRecord({"steps": most, "right": right, "of": of})
    result = _path(settings, "result")
    if result is not None:
        _write(result, done, most, right / of)


def _meet(grid: Grid, agreed: Terms) -> tuple[dict[int, int], NDArray[np.float64]]:
    """Nodes by client number, and the initial model that all of them agree on."""
    until = time.monotonic() + _WAIT_SECONDS
    told = float("-inf")
    while len(nodes := sorted(grid.get_node_ids())) < agreed.clients:
        if time.monotonic() - told > _TELL_SECONDS:
            told = time.monotonic()
            logging.getLogger("flwr").warning(
                "waiting: %d of %d clients are connected; start the others, or set clients to what there is (a"
                " simulation takes more with: flwr federation simulation-config @none/default --num-supernodes %d)",
                len(nodes),
                agreed.clients,
                agreed.clients,
            )
        if time.monotonic() > until:
            raise ContributionError(
                f"{len(nodes)} of {agreed.clients} clients are connected", where="clients", remedy="start the others"
            )
        time.sleep(1)
    found = ask_all(grid, nodes, wire.INITIAL, content({}))
    by_number = {setting(answer, wire.ACCOUNT, "client"): node for node, answer in found.items()}
    if sorted(by_number) != list(range(agreed.clients)) or len(found) != agreed.clients:
        raise ContributionError(
            f"{len(found)} nodes say that they are clients {sorted(by_number)}",
            where="clients",
            remedy=f"needs each of 0 to {agreed.clients - 1} once: give every node its own partition-id",
        )
    models = [arrays(answer, wire.MODEL)[0] for answer in found.values()]
    if any(not np.array_equal(model, models[0]) for model in models):
        raise ContributionError(
            "clients disagree about the initial model", where="clients", remedy="use one version everywhere"
        )
    return by_number, models[0].astype(np.float64)


def _begin(settings: dict[str, Any], checkpoint: Path | None, initial: NDArray[np.float64]) -> Standing:
    if settings.get("resume", False):
        if checkpoint is None or not checkpoint.is_file():
            raise StudyError("there is no checkpoint to resume", where="checkpoint", remedy="start without resume")
        return Standing.load(checkpoint)
    start = _path(settings, "start")
    if start is None:
        return Standing(0, initial)
    try:
        with np.load(start, allow_pickle=False) as file:
            theta = np.asarray(file["theta"], np.float64)
    except NO_NPZ as error:
        raise StorageError("this is no npz file with an array theta", where=str(start)) from error
    if theta.shape != initial.shape:
        raise StudyError(f"a model of shape {theta.shape}", where=str(start), remedy=f"needs {initial.shape}")
    return Standing(0, theta)


def _accuracy(grid: Grid, nodes: dict[int, int], theta: NDArray[np.float64]) -> tuple[int, int]:
    """On the public test samples, counted by one client."""
    first = nodes[min(nodes)]
    found = ask(grid, [first], "evaluate", content({wire.MODEL: [theta]}))
    if first not in found:
        raise ContributionError("no client evaluated the model", where="clients", remedy="resume the run")
    return setting(found[first], wire.ACCOUNT, "right"), setting(found[first], wire.ACCOUNT, "of")


def _write(path: Path, done: Standing, steps: int, accuracy: float) -> None:
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as file:
            np.savez(
                file, theta=done.theta, step=np.array(done.step), steps=np.array(steps), accuracy=np.array(accuracy)
            )
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StorageError("the model cannot be written", where=str(path), remedy="free space") from error


def _path(settings: dict[str, Any], key: str) -> Path | None:
    return Path(str(settings[key])) if settings.get(key) else None
