"""The torch modules of local mode are the networks of the engines, parameter by parameter."""

import numpy as np
import pytest
import torch
from torch.nn.utils import vector_to_parameters

from coalmine.clients.training.fast.build import engine
from coalmine.clients.training.fast.module import module
from coalmine.clients.training.models import Activation, Kind, ModelSpec

torch.set_num_threads(1)


@pytest.mark.parametrize(
    "spec",
    [
        ModelSpec(Kind.LOGISTIC, (5,), 3),
        ModelSpec(Kind.MLP, (1, 4, 4), 3, hidden=(6, 5)),
        ModelSpec(Kind.MLP, (7,), 2, activation=Activation.RELU),
        ModelSpec(Kind.CNN, (2, 14, 14), 4, width=3),
        ModelSpec(Kind.WRN16, (1, 8, 8), 3, width=1),
    ],
    ids=lambda spec: spec.kind.value,
)
def test_a_module_and_its_engine_are_one_network(spec):
    chosen, network = engine(spec), module(spec).double()
    theta = torch.as_tensor(np.random.default_rng(0).standard_normal(chosen.parameters) * 0.3)
    assert sum(parameter.numel() for parameter in network.parameters()) == chosen.parameters
    vector_to_parameters(theta, network.parameters())
    x = torch.as_tensor(np.random.default_rng(1).standard_normal((4, *spec.shape)))
    with torch.no_grad():
        mine, theirs = network(x), chosen.logits(theta[None], x)[0]
    assert torch.allclose(mine, theirs, atol=1e-9)
    assert theirs.std() > 1e-3
