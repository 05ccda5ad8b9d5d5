"""What an attacker with a public reference model computes to craft canaries: gradients by the input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from coalmine.clients.training.fast.engine import Engine
from coalmine.clients.training.fast.objective import losses
from coalmine.clients.training.fast.population import Population
from coalmine.clients.training.plan import CrossEntropy, Plan, Unprotected
from coalmine.clients.training.table import Table
from coalmine.protocol.dpsgd.optimiser import Sgd

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Exposure:
    """How visible one sample is to a model and to a filter by gradient norm.

    Attributes:
        loss, norm: of the sample; norm is the L2 norm of its unclipped gradient.
        by_input_loss, by_input_norm: (*shape) their gradients by the sample's features.
    """

    loss: float
    norm: float
    by_input_loss: Array
    by_input_norm: Array


def pretrained(engine: Engine, public: Table, steps: int, seed: int, *, lr: float = 0.3, batch: int = 256) -> Array:
    """(P,) parameters after ordinary SGD on public samples: a start that costs no privacy, or a reference model."""
    q = min(1.0, batch / len(public))
    plan = Plan(Unprotected(q, len(public)), steps, Sgd(lr))
    done = Population(engine, plan, public, np.ones((1, len(public)), np.bool_), [seed]).run()
    return np.asarray(done.theta[0], np.float64)


def input_gradients(engine: Engine, theta: Array, x: ArrayLike, y: ArrayLike) -> Array:
    """(n, *shape) gradients of each sample's loss by its features under the (P,) reference model."""
    samples = torch.as_tensor(np.asarray(x, np.float64)).requires_grad_()
    logits = engine.logits(torch.as_tensor(theta)[None], samples)[0]
    total = losses(CrossEntropy(), logits, torch.as_tensor(np.asarray(y, np.int64))).sum()
    (gradient,) = torch.autograd.grad(total, samples)
    return np.asarray(gradient.numpy(), np.float64)


def exposure(engine: Engine, theta: Array, x: ArrayLike, label: int) -> Exposure:
    """Of one (*shape) sample under the (P,) reference model."""
    sample = torch.as_tensor(np.asarray(x, np.float64))[None].requires_grad_()
    parameters = torch.as_tensor(theta)[None].requires_grad_()
    loss = losses(CrossEntropy(), engine.logits(parameters, sample)[0], torch.tensor([label])).sum()
    by_parameters, by_input = torch.autograd.grad(loss, (parameters, sample), create_graph=True)
    norm = torch.linalg.vector_norm(by_parameters)
    (norm_by_input,) = torch.autograd.grad(norm, sample)
    return Exposure(
        float(loss.detach()),
        float(norm.detach()),
        np.asarray(by_input[0].detach().numpy(), np.float64),
        np.asarray(norm_by_input[0].numpy(), np.float64),
    )
