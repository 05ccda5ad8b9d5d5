"""From a model's specification to the engine that trains it."""

from __future__ import annotations

from itertools import pairwise

import torch

from coalmine.clients.training.fast.dense import Dense
from coalmine.clients.training.fast.engine import Engine
from coalmine.clients.training.fast.ghost import GhostEngine
from coalmine.clients.training.fast.layers import Conv, Layer, Linear, Plain, max_pooled
from coalmine.clients.training.models import Activation, Kind, ModelSpec
from coalmine.protocol.errors import ModelError


def engine(spec: ModelSpec) -> Engine:
    """Closed form for linear models, MLPs and the small CNN; Opacus for everything else.

    Raises:
        ModelError: images too small for the network.
    """
    match spec.kind:
        case Kind.LOGISTIC | Kind.MLP:
            widths = (
                int(torch.Size(spec.shape).numel()),
                *(spec.hidden if spec.kind is Kind.MLP else ()),
                spec.classes,
            )
            how = "closed-form ghost clipping: every layer is linear"
            return GhostEngine(_mlp(widths, _activation(spec)), how, Dense(widths, spec.activation))
        case Kind.CNN:
            return GhostEngine(_cnn(spec), "ghost clipping over unfolded patches: linear layers and convolutions only")
        case Kind.WRN16:
            from coalmine.clients.training.fast.opacus_engine import OpacusEngine
            from coalmine.clients.training.fast.wide_resnet import WideResNet16

            return OpacusEngine(lambda: WideResNet16(spec.shape[0], spec.classes, spec.width))


def _mlp(widths: tuple[int, ...], active: Layer) -> tuple[Layer, ...]:
    layers: list[Layer] = []
    for inputs, outputs in pairwise(widths):
        layers += [Linear(inputs, outputs), active]
    return tuple(layers[:-1])


def _cnn(spec: ModelSpec) -> tuple[Layer, ...]:
    """Two convolutions with max pooling, two linear layers (the small MNIST network of the DP-SGD literature)."""
    channels, *sides = spec.shape
    first, second = Conv(channels, spec.width, 8, 2, 3), Conv(spec.width, 2 * spec.width, 4, 2)
    pool = Plain(max_pooled)
    left = [second.side(first.side(side) - 1) - 1 for side in sides]
    if min(left) < 1:
        raise ModelError(
            f"images of {sides[0]} x {sides[1]} are too small for this CNN",
            where="model",
            remedy="needs sides of at least 14; use mlp for smaller images",
        )
    active = _activation(spec)
    return (
        first,
        active,
        pool,
        second,
        active,
        pool,
        Linear(2 * spec.width * left[0] * left[1], 32),
        active,
        Linear(32, spec.classes),
    )


def _activation(spec: ModelSpec) -> Layer:
    return Plain(torch.tanh if spec.activation is Activation.TANH else torch.relu)
