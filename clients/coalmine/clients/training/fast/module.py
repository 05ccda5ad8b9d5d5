"""The same networks as torch modules, their parameters in the order of the engines' flat vectors."""

from __future__ import annotations

from itertools import pairwise

from torch import nn

from coalmine.clients.training.fast.build import engine
from coalmine.clients.training.models import Activation, Kind, ModelSpec


def module(spec: ModelSpec) -> nn.Module:
    """A fresh network with as many parameters as the spec's engine."""
    active: type[nn.Module] = nn.Tanh if spec.activation is Activation.TANH else nn.ReLU
    features = 1
    for side in spec.shape:
        features *= side
    match spec.kind:
        case Kind.LOGISTIC | Kind.MLP:
            widths = [features, *(spec.hidden if spec.kind is Kind.MLP else ()), spec.classes]
            layers: list[nn.Module] = [nn.Flatten()]
            for inputs, outputs in pairwise(widths):
                layers += [nn.Linear(inputs, outputs), active()]
            return nn.Sequential(*layers[:-1])
        case Kind.CNN:
            width = spec.width
            convolutions = (spec.shape[0] * 64 + 1) * width + (width * 16 + 1) * 2 * width
            flat = (engine(spec).parameters - convolutions - 33 * spec.classes) // 32 - 1
            return nn.Sequential(
                nn.Conv2d(spec.shape[0], width, 8, 2, 3),
                active(),
                nn.MaxPool2d(2, 1),
                nn.Conv2d(width, 2 * width, 4, 2),
                active(),
                nn.MaxPool2d(2, 1),
                nn.Flatten(),
                nn.Linear(flat, 32),
                active(),
                nn.Linear(32, spec.classes),
            )
        case Kind.WRN16:
            from coalmine.clients.training.fast.wide_resnet import WideResNet16

            return WideResNet16(spec.shape[0], spec.classes, spec.width)
