"""Clipped sums through Opacus' per-sample gradients, for networks without a closed form. One model at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from opacus import GradSampleModule
from opacus.validators import ModuleValidator
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from coalmine.clients.training.fast.engine import Batches, Facts
from coalmine.clients.training.fast.objective import losses
from coalmine.clients.training.plan import CrossEntropy, Hamp
from coalmine.protocol.errors import ModelError
from coalmine.protocol.randomness import Purpose, stream


class OpacusEngine:
    """Any module that Opacus accepts.

    Args:
        make: builds a fresh module.

    Raises:
        ModelError: Opacus' validator refuses the module (batch norm, for one).
    """

    def __init__(self, make: Callable[[], nn.Module]) -> None:
        module = make()
        refused = ModuleValidator.validate(module, strict=False)
        if refused:
            raise ModelError(
                f"Opacus refuses this network: {refused[0]}",
                where=type(module).__name__,
                remedy="use layers that treat samples one by one: group norm instead of batch norm",
            )
        self._make = make
        self._module = GradSampleModule(module, loss_reduction="sum")
        self._sizes = [parameter.numel() for parameter in module.parameters()]
        self._plain = make()
        self._shapes = [(name, parameter.detach()) for name, parameter in self._plain.named_parameters()]

    @property
    def how(self) -> str:
        return "Opacus' per-sample gradients: this network has layers without a closed form"

    @property
    def parameters(self) -> int:
        return sum(self._sizes)

    def initial(self, seed: int) -> NDArray[np.float64]:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(stream(seed, Purpose.INITIAL_MODEL).integers(2**62)))
            made = parameters_to_vector(self._make().parameters())
        return np.asarray(made.detach().double().numpy(), np.float64)

    def logits(self, theta: Tensor, x: Tensor) -> Tensor:
        self._plain.to(theta)
        rows = []
        for parameters in theta:
            parts = parameters.split(self._sizes)
            named = {name: part.view(own.shape) for (name, own), part in zip(self._shapes, parts, strict=True)}
            rows.append(functional_call(self._plain, named, (x,)))
        return torch.stack(rows)

    def clipped_sums(self, theta: Tensor, batches: Batches, clip: float, loss: CrossEntropy | Hamp) -> Tensor:
        sums = torch.zeros_like(theta)
        for number, (parameters, (x, y)) in enumerate(zip(theta, batches, strict=True)):
            if len(y):
                gradients, _ = self._gradients(parameters, x, y, loss)
                scale = (clip / gradients.norm(dim=1)).nan_to_num(nan=1.0, posinf=1.0).clamp(max=1.0)
                sums[number] = scale @ gradients if clip < float("inf") else gradients.sum(0)
        return sums

    def facts(self, theta: Tensor, x: Tensor, y: Tensor, directions: Tensor, loss: CrossEntropy | Hamp) -> Facts:
        found = []
        for parameters, own in zip(theta, directions, strict=True):
            gradients, logits = self._gradients(parameters, x.unsqueeze(1), y, loss)
            wide = gradients.double()
            found.append(
                (
                    logits.squeeze(1),
                    gradients.norm(dim=1),
                    gradients.abs().amax(1),
                    torch.stack([(wide**p).sum(1) for p in range(1, 5)], dim=1),
                    gradients @ own.T,
                )
            )
        columns = (torch.stack(column).detach().double().cpu().numpy() for column in zip(*found, strict=True))
        return Facts(*columns)

    def place(self, coordinate: int) -> str:
        return self._shapes[int(np.searchsorted(np.cumsum(self._sizes), coordinate, side="right"))][0]

    def _load(self, parameters: Tensor) -> None:
        self._module.to(parameters)
        vector_to_parameters(parameters.clone(), self._module.parameters())

    def _gradients(self, parameters: Tensor, x: Tensor, y: Tensor, loss: CrossEntropy | Hamp) -> tuple[Tensor, Tensor]:
        """(B, P) gradients of each sample's mean loss over its views and (B, K, c) logits; x is (B, K, *shape)."""
        samples, views = x.shape[:2]
        self._load(parameters)
        self._module.zero_grad(set_to_none=True)
        with torch.enable_grad():
            seen = x.flatten(0, 1).detach().requires_grad_()  # else torch warns that hooks see no input gradient
            logits = torch.unflatten(self._module(seen), 0, (samples, views))
            torch.autograd.backward(losses(loss, logits, y.unsqueeze(1).expand(-1, views)).sum() / views)
        parts = [parameter.grad_sample.flatten(1) for parameter in self._module.parameters()]
        by_view = torch.unflatten(torch.cat(parts, dim=1), 0, (samples, views))
        self._module.zero_grad(set_to_none=True)
        return by_view.sum(1), logits.detach()
