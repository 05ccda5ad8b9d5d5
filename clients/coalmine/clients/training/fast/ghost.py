"""Clipped sums for R layered models at once, without a gradient per sample where the layer allows it."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coalmine.clients.training.fast.dense import Dense
from coalmine.clients.training.fast.engine import Batches, Facts, Padded
from coalmine.clients.training.fast.layers import Layer, Tape, bound
from coalmine.clients.training.fast.objective import losses
from coalmine.clients.training.fast.outer import Outer
from coalmine.clients.training.plan import CrossEntropy, Hamp
from coalmine.protocol.randomness import Purpose, stream


class GhostEngine:
    """Per-sample clipping of a chain of layers in closed form.

    Args:
        layers: applied in order; the last one gives the logits.
        how: for the log.
        dense: the same chain where all its layers are linear: faster sums on a CPU.
    """

    def __init__(self, layers: tuple[Layer, ...], how: str, dense: Dense | None = None) -> None:
        self._layers, self._how, self._dense = layers, how, dense
        self._parametrised = [layer for layer in layers if layer.parameters]

    @property
    def how(self) -> str:
        return self._how

    @cached_property
    def parameters(self) -> int:
        return sum(layer.parameters for layer in self._parametrised)

    def initial(self, seed: int) -> NDArray[np.float64]:
        rng = stream(seed, Purpose.INITIAL_MODEL)
        return np.concatenate([bound(layer) * (2 * rng.random(layer.parameters) - 1) for layer in self._layers])

    def logits(self, theta: Tensor, x: Tensor) -> Tensor:
        return self._forward(theta, x.expand(len(theta), *x.shape), None)

    def clipped_sums(self, theta: Tensor, batches: Batches, clip: float, loss: CrossEntropy | Hamp) -> Tensor:
        if self._dense is None or batches.x.shape[1] > 1 or theta.device.type != "cpu":
            return self._from_products(theta, batches.padded(), clip, loss)
        x, y = batches.x.flatten(1).numpy(), batches.y.numpy()
        return torch.as_tensor(self._dense.clipped_sums(theta.numpy(), x, y, batches.sizes, clip, loss))

    def _from_products(self, theta: Tensor, batch: Padded, clip: float, loss: CrossEntropy | Hamp) -> Tensor:
        """Of all models together, by batched matrix products."""
        outers, _ = self._outers(theta, batch, loss)
        norms = self._norms(outers)
        weights = batch.there * (clip / norms).nan_to_num(nan=1.0, posinf=1.0).clamp(max=1.0)
        if clip == float("inf"):
            weights = batch.there.to(theta.dtype)
        every = zip(self._parametrised, outers, strict=True)
        return torch.cat([layer.flat(outer.weighted_sum(weights)) for layer, outer in every], dim=1)

    def facts(self, theta: Tensor, x: Tensor, y: Tensor, directions: Tensor, loss: CrossEntropy | Hamp) -> Facts:
        models = len(theta)
        everyone = torch.ones(models, len(x), dtype=torch.bool, device=x.device)
        common = Padded(x.unsqueeze(1).expand(models, *x.shape[:1], 1, *x.shape[1:]), y.expand(models, -1), everyone)
        outers, logits = self._outers(theta, common, loss)
        own = torch.split(directions, [layer.parameters for layer in self._parametrised], dim=2)
        every = zip(self._parametrised, outers, own, strict=True)
        dots = sum(outer.dots(layer.inner(direction)) for layer, outer, direction in every)
        return Facts(
            _numpy(logits.squeeze(2)),
            _numpy(self._norms(outers)),
            _numpy(torch.stack([outer.largest() for outer in outers]).amax(0)),
            _numpy(torch.stack([outer.power_sums() for outer in outers]).sum(0)),
            _numpy(torch.as_tensor(dots)),
        )

    def place(self, coordinate: int) -> str:
        left = coordinate
        for number, layer in enumerate(self._layers):
            if left < layer.parameters:
                return f"layer {number + 1} ({type(layer).__name__.lower()})"
            left -= layer.parameters
        raise IndexError(coordinate)

    def _forward(self, theta: Tensor, x: Tensor, tape: Tape | None) -> Tensor:
        start = 0
        for layer in self._layers:
            x = layer.forward(theta[:, start : start + layer.parameters], x, tape)
            start += layer.parameters
        return x

    def _outers(self, theta: Tensor, batch: Padded, loss: CrossEntropy | Hamp) -> tuple[list[Outer], Tensor]:
        """Every parametrised layer's per-sample gradients, and (R, B, K, c) logits."""
        samples, views = batch.x.shape[1:3]
        tape: Tape = []
        with torch.enable_grad():
            logits = torch.unflatten(self._forward(theta, batch.x.flatten(1, 2), tape), 1, (samples, views))
            each = losses(loss, logits, batch.y.unsqueeze(2).expand(-1, -1, views)).mean(2)
            gradients = torch.autograd.grad((each * batch.there).sum(), [s for _, s in tape])
        return [
            Outer(_by_sample(a.detach(), samples), _by_sample(b, samples))
            for (a, _), b in zip(tape, gradients, strict=True)
        ], logits.detach()

    @staticmethod
    def _norms(outers: list[Outer]) -> Tensor:
        return torch.stack([outer.squared_norms() for outer in outers]).sum(0).sqrt()


def _by_sample(rows: Tensor, samples: int) -> Tensor:
    """(R, B * K, T, i) to (R, B, K * T, i)."""
    return torch.unflatten(rows, 1, (samples, -1)).flatten(2, 3)


def _numpy(values: Tensor) -> NDArray[np.float64]:
    return np.asarray(values.detach().double().cpu().numpy(), np.float64)
