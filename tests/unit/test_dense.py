"""Dense chains in closed form against gradients of single samples by autograd."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from coalmine.clients.training.fast.build import engine
from coalmine.clients.training.fast.dense import Dense
from coalmine.clients.training.fast.engine import Batches
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
    (found,) = Dense((7, *hidden, 3), activation).clipped_sums(theta[None], x, y, [9], clip, loss)
    np.testing.assert_allclose(found, one_by_one(spec, theta, x, y, clip, loss), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_nobody_adds_nothing_and_single_precision_stays_so(loss):
    chain = engine(ModelSpec(Kind.MLP, (7,), 3, hidden=(5,)))
    theta = torch.randn((3, chain.parameters), generator=torch.Generator().manual_seed(0))
    batches = Batches(torch.ones(1, 1, 7), torch.ones(1, dtype=torch.int64), [0, 1, 0])
    nobody, one, last = chain.clipped_sums(theta, batches, 1.0, loss)
    assert nobody.dtype == one.dtype == torch.float32
    assert not nobody.any()
    assert not last.any()
    assert 0 < one.norm() <= 1 + 1e-6
    nobody = chain.clipped_sums(theta, Batches(torch.ones(0, 1, 7), torch.ones(0, dtype=torch.int64), [0] * 3), 1, loss)
    assert not nobody.any()


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("activation", Activation)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@given(sizes=st.lists(st.integers(0, 20), min_size=2, max_size=9), seed=st.integers(0, 99))
def test_no_model_is_rounded_in_another_way_in_company(sizes, seed, kind, activation, loss):
    chain = Dense((17, 33, 10), activation)
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal((len(sizes), 17 * 33 + 33 + 330 + 10)).astype(kind)
    x, y = rng.standard_normal((sum(sizes), 17)).astype(kind), rng.integers(0, 10, sum(sizes))
    together = chain.clipped_sums(theta, x, y, sizes, 1.0, loss)
    bounds = np.cumsum([0, *sizes])
    for own, start, end, found in zip(theta, bounds, bounds[1:], together, strict=False):
        (alone,) = chain.clipped_sums(own[None], x[start:end], y[start:end], [end - start], 1.0, loss)
        np.testing.assert_array_equal(found, alone)


@pytest.mark.parametrize("activation", Activation)
def test_a_model_that_diverged_is_not_hidden(activation):
    theta = np.full((1, 7 * 5 + 5 + 5 * 3 + 3), np.nan)
    found = Dense((7, 5, 3), activation).clipped_sums(theta, np.ones((2, 7)), np.array([0, 1]), [2], 1, CrossEntropy())
    assert np.isnan(found).any()
