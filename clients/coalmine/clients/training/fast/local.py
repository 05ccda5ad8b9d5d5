"""Local mode: noised steps by Opacus at one client, and a count of right predictions."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from torch import nn
from torch.nn import functional
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from coalmine.clients.training.fast.engine import Engine
from coalmine.clients.training.fast.module import module
from coalmine.clients.training.table import Table
from coalmine.protocol.dpsgd.optimiser import Sgd
from coalmine.protocol.dpsgd.sampling import poisson_batch
from coalmine.protocol.errors import ContributionError
from coalmine.protocol.randomness import Purpose, stream

if TYPE_CHECKING:
    from coalmine.clients.training.order import Client

Array = NDArray[np.float64]


def noised_steps(who: Client, theta: Array, step: int, active: NDArray[np.bool_]) -> Array:
    """(P,) parameters after ``local_steps`` steps of DP-SGD on the client's active samples.

    Batches are Poisson with the run's coins; every step adds its own noise, also where the batch is empty; the divisor
    is the public ``q * declared_size`` of one client.

    Raises:
        ContributionError: the model diverged.
    """
    mechanism, dtype = who.terms.mechanism, torch.float64 if who.execution.double else torch.float32
    network = GradSampleModule(module(who.spec).to(dtype), loss_reduction="sum")
    vector_to_parameters(torch.as_tensor(theta, dtype=dtype), network.parameters())
    seed = int(stream(who.terms.seed, Purpose.NOISE, step, f"client {who.number}").integers(2**62))
    optimiser = DPOptimizer(
        _plain(network, who),
        noise_multiplier=mechanism.sigma,
        max_grad_norm=mechanism.clip,
        expected_batch_size=1,
        loss_reduction="sum",
        generator=torch.Generator().manual_seed(seed),
    )
    x, y = torch.as_tensor(who.own.x, dtype=dtype), torch.as_tensor(who.own.y)
    for number in range(step, step + who.terms.local_steps):
        coins = poisson_batch(stream(who.terms.seed, Purpose.BATCH, number), who.terms.universe, mechanism.q)
        batch = torch.as_tensor(np.flatnonzero((coins & active)[who.ids]))
        optimiser.zero_grad(set_to_none=True)
        if len(batch):
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*[Nn]on-full backward hook.*|.*Full backward hook.*")
                functional.cross_entropy(network(x[batch]), y[batch], reduction="sum").backward()  # type: ignore[no-untyped-call]
        else:
            for parameter in network.parameters():
                parameter.grad_sample = parameter.new_zeros(0, *parameter.shape)
        optimiser.pre_step()
        for parameter in network.parameters():
            assert parameter.grad is not None
            parameter.grad /= mechanism.batch_size
        optimiser.original_optimizer.step()
    after = parameters_to_vector(network.parameters()).detach().double().numpy()
    if not np.isfinite(after).all():
        raise ContributionError(
            "the model is not a number", where=f"step {step}, client {who.number}", remedy="lower the learning rate"
        )
    return np.asarray(after, np.float64)


def right(engine: Engine, theta: Array, data: Table) -> int:
    """How many samples the (P,) model labels right."""
    with torch.no_grad():
        logits = engine.logits(torch.as_tensor(theta)[None], torch.as_tensor(data.x, dtype=torch.float64))[0]
    return int((logits.argmax(1).numpy() == data.y).sum())


def _plain(network: nn.Module, who: Client) -> torch.optim.Optimizer:
    rule = who.terms.optimiser
    if isinstance(rule, Sgd):
        return torch.optim.SGD(network.parameters(), lr=rule.lr, momentum=rule.momentum)
    return torch.optim.Adam(network.parameters(), lr=rule.lr)  # type: ignore[attr-defined]
