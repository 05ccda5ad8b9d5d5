"""Dense chains in closed form against gradients of single samples by autograd."""

import numpy as np
import pytest
import torch

from coalmine.clients.training.fast.build import engine
from coalmine.clients.training.fast.dense import Dense
from coalmine.clients.training.fast.objective import losses
from coalmine.clients.training.models import Activation, Kind, ModelSpec
from coalmine.clients.training.plan import CrossEntropy, Hamp

WIDTHS = {"logistic": (), "one hidden layer": (5,), "three": (6, 4, 5)}
LOSSES = {"cross-entropy": CrossEntropy(), "HAMP": Hamp(0.6, 0.05)}


def one_by_one(spec, theta, x, y, clip, loss):
    """Each sample's gradient by autograd, then the plain definition of clipping."""
    total = np.zeros_like(theta)
    for features, label in zip(x, y, strict=True):
        parameters = torch.as_tensor(theta)[None].requires_grad_()
        logits = engine(spec).logits(parameters, torch.as_tensor(features)[None])[0]
        (gradient,) = torch.autograd.grad(losses(loss, logits, torch.tensor([label])).sum(), parameters)
        norm = np.linalg.norm(gradient[0].numpy())
        total += gradient[0].numpy() * min(1.0, clip / norm if norm else 1.0)
    return total


@pytest.mark.parametrize("clip", [0.3, 2.0, float("inf")])
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("activation", Activation)
@pytest.mark.parametrize("hidden", WIDTHS.values(), ids=WIDTHS)
def test_sums_are_those_of_single_samples(hidden, activation, loss, clip):
    kind = Kind.MLP if hidden else Kind.LOGISTIC
    spec = ModelSpec(kind, (7,), 3, hidden=hidden or (1,), activation=activation)
    rng = np.random.default_rng(len(hidden))
    theta = 0.7 * rng.standard_normal(engine(spec).parameters)
    x, y = rng.standard_normal((9, 7)), rng.integers(0, 3, 9)
    found = Dense((7, *hidden, 3), activation).clipped_sum(theta, x, y, clip, loss)
    np.testing.assert_allclose(found, one_by_one(spec, theta, x, y, clip, loss), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_nobody_adds_nothing_and_single_precision_stays_so(loss):
    chain = Dense((7, 5, 3), Activation.TANH)
    theta = np.random.default_rng(0).standard_normal(7 * 5 + 5 + 5 * 3 + 3).astype(np.float32)
    nobody = chain.clipped_sum(theta, np.zeros((0, 7), np.float32), np.zeros(0, np.int64), 1.0, loss)
    assert nobody.dtype == np.float32
    assert not nobody.any()
    one = chain.clipped_sum(theta, np.ones((1, 7), np.float32), np.array([1]), 1.0, loss)
    assert one.dtype == np.float32
    assert np.linalg.norm(one) <= 1 + 1e-6


def test_a_model_that_diverged_is_not_hidden():
    theta = np.full(7 * 5 + 5 + 5 * 3 + 3, np.nan)
    found = Dense((7, 5, 3), Activation.TANH).clipped_sum(theta, np.ones((2, 7)), np.array([0, 1]), 1.0, CrossEntropy())
    assert np.isnan(found).any()
