"""`coalmine train`: one model through the Flower apps in this process, its claim and its accuracy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from coalmine.auditor.membership.result import Trained
from coalmine.auditor.report.write import write_bytes
from coalmine.deploy.manifest import forget
from coalmine.deploy.progress import Stages
from coalmine.deploy.study import Study
from coalmine.deploy.training.prepare import (
    CHECKPOINT,
    MODEL,
    OF_AUDITS,
    OF_TRAINING,
    SHADOWS,
    START,
    TRAINED,
    Prepared,
    begin,
    flower_version,
    in_local_folder,
    prepared,
    start_of,
)
from coalmine.protocol.dpsgd.claims import claim
from coalmine.protocol.dpsgd.terms import Mode, Scope, Terms
from coalmine.protocol.errors import StudyError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def train(
    study: Study, folder: Path, stages: Stages, *, resume: bool = False, replace: bool = False
) -> tuple[Trained, Prepared]:
    """Train, or go on where the checkpoint in ``folder`` stands.

    ``folder`` afterwards holds the model, a checkpoint for its owner only, and what the run was when it began.

    Raises:
        CoalmineError: bad input, or a client that refuses to go on; the checkpoint stays at the last good step.
    """
    version = flower_version()
    with stages.stage("data"):
        ready = prepared(study)
    facts = {**ready.facts(study.seed), "version of flwr": version}
    if replace:
        forget(folder, *OF_TRAINING, *OF_AUDITS, SHADOWS)
    begin(folder, facts, resume=resume, replace=replace)
    if resume and not (folder / CHECKPOINT).is_file():
        raise StudyError("there is no checkpoint yet", where=str(folder), remedy="run without --resume")
    if not resume:
        forget(folder, CHECKPOINT, START, MODEL, TRAINED)
    settings = in_local_folder(ready.settings, checkpoint=folder / CHECKPOINT, result=folder / MODEL)
    start = start_of(ready, study.seed)
    if start is not None:
        _write_start(folder / START, start)
        settings = in_local_folder(settings, start=folder / START)
    before = _accuracy_before(ready, start, study.seed)
    from coalmine.clients.training.app import app as client_app
    from coalmine.deploy.training.federation import run_in_process
    from coalmine.server.training import app as server_app

    agreed = ready.agreed
    with stages.stage("train", agreed.rounds, "rounds") as advance:
        if resume:
            advance(_done(folder / CHECKPOINT) // agreed.local_steps)
        context = run_in_process(server_app.app, client_app, {**settings, "resume": resume}, agreed.clients, advance)
    account = server_app.account(context)
    with stages.stage("accounting"):
        # Who was away took fewer steps. The claim is nevertheless about a client that is always there.
        promised = claim(agreed.mechanism, max(agreed.steps, account.steps))
    found = Trained(
        study=study.study,
        mode=agreed.mode.value,
        claim=promised,
        trust=trust(agreed),
        clients=agreed.clients,
        rounds=agreed.rounds,
        accuracy=account.right / account.of,
        accuracy_before=before,
        test_samples=account.of,
        largest_drop=ready.largest_drop,
        facts=facts,
        seconds=dict(stages.seconds),
    )
    return found, ready


def trust(agreed: Terms) -> str:
    """Whom the claim relies on."""
    seed = "Randomness is simulated: whoever knows the seed can recompute batches and noise."
    if agreed.mode is Mode.LOCAL:
        return f"Each client adds its own noise, so the claim also holds against the server. {seed}"
    told = "The server is trusted: it sees each client's sum before it adds the noise; this is no secure aggregation."
    if agreed.filter is not None and agreed.scope is Scope.FEDERATION:
        told += " For the filter it also sees ids, labels and signatures of all active samples."
    return f"{told} {seed}"


def _accuracy_before(ready: Prepared, start: NDArray[np.float64] | None, seed: int) -> float:
    from coalmine.clients.training.fast.shadows import accuracy, initial

    return accuracy(ready.spec, initial(ready.spec, seed) if start is None else start, ready.data.test)


def _write_start(path: Path, theta: NDArray[np.float64]) -> None:
    import io

    packed = io.BytesIO()
    np.savez(packed, theta=theta)
    write_bytes(path, packed.getvalue())


def _done(checkpoint: Path) -> int:
    from coalmine.server.training.standing import Standing

    return Standing.load(checkpoint).step
