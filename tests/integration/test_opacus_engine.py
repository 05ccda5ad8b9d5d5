"""The fast trainer and Opacus agree; networks without a closed form go through Opacus."""

import numpy as np
import pytest
import torch
from oracles import naive_dpsgd
from torch import nn

from coalmine.clients.training.fast.build import engine
from coalmine.clients.training.fast.opacus_engine import OpacusEngine
from coalmine.clients.training.fast.population import Population
from coalmine.clients.training.models import Kind, ModelSpec
from coalmine.clients.training.plan import Augmentation, Execution, Plan
from coalmine.clients.training.table import table
from coalmine.protocol.dpsgd.mechanism import DpSgd
from coalmine.protocol.dpsgd.optimiser import Sgd
from coalmine.protocol.dpsgd.schedule import FilterSchedule
from coalmine.protocol.dpsgd.signatures import Signature
from coalmine.protocol.errors import ModelError

pytestmark = pytest.mark.integration
torch.set_num_threads(1)
PRIVACY = DpSgd(q=0.3, sigma=0.8, clip=0.7, delta=1e-5, declared_size=20)


def data(shape):
    rng = np.random.default_rng(0)
    return table(rng.standard_normal((20, *shape)), rng.integers(0, 3, 20), 3, where="test")


NETWORKS = {
    "mlp": (
        ModelSpec(Kind.MLP, (6,), 3, hidden=(5,)),
        lambda: nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)),
    ),
    "cnn": (
        ModelSpec(Kind.CNN, (1, 14, 14), 3, width=2),
        lambda: nn.Sequential(
            nn.Conv2d(1, 2, 8, 2, 3),
            nn.Tanh(),
            nn.MaxPool2d(2, 1),
            nn.Conv2d(2, 4, 4, 2),
            nn.Tanh(),
            nn.MaxPool2d(2, 1),
            nn.Flatten(),
            nn.Linear(4, 32),
            nn.Tanh(),
            nn.Linear(32, 3),
        ),
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(("double", "tolerance"), [(True, 1e-10), (False, 1e-5)])
@pytest.mark.parametrize("signature", [Signature.GRAD_L2, Signature.GRAD_KURTOSIS, Signature.PROJECTION_VARIABILITY])
def test_closed_form_and_opacus_train_the_same_model(name, double, tolerance, signature):
    spec, make = NETWORKS[name]
    plan = Plan(PRIVACY, 10, Sgd(0.2), FilterSchedule(k=1, last_epoch=2, signature=signature))
    if name == "mlp":
        plan = Plan(PRIVACY, 10, Sgd(0.2), plan.filter, augmentation=Augmentation(views=3, jitter=0.2))
    members = np.random.default_rng(1).random((2, 20)) < 0.8
    fast = Population(engine(spec), plan, data(spec.shape), members, [1, 2], execution=Execution(double=double))
    slow = Population(
        OpacusEngine(make),
        plan,
        data(spec.shape),
        members,
        [1, 2],
        start=fast.progress.theta,
        execution=Execution(double=double),
    )
    one, other = fast.run(), slow.run()
    assert np.abs(one.theta - other.theta).max() < tolerance
    assert np.array_equal(one.dropped, other.dropped)
    assert (one.dropped >= 0).sum() > 10


def test_wide_resnet_trains_through_opacus_as_the_loop_does():
    from coalmine.clients.training.fast.wide_resnet import WideResNet16

    spec = ModelSpec(Kind.WRN16, (2, 8, 8), 3, width=1)
    chosen = engine(spec)
    assert "Opacus" in chosen.how
    assert "closed-form" in engine(NETWORKS["mlp"][0]).how
    plan = Plan(PRIVACY, 4, Sgd(0.2), FilterSchedule(k=1))
    samples, members = data(spec.shape), np.ones((1, 20), bool)
    fast = Population(chosen, plan, samples, members, [5], execution=Execution(double=True))
    start = fast.progress.theta[0].copy()
    done = fast.run()
    module = WideResNet16(2, 3, 1).double()
    theta, dropped = naive_dpsgd.train(
        module, plan, torch.as_tensor(samples.x).double(), torch.as_tensor(samples.y), members[0], 5, start
    )
    assert np.abs(done.theta[0] - theta).max() < 1e-10
    assert {int(i): int(done.dropped[0, i]) for i in np.flatnonzero(done.dropped[0] >= 0)} == dropped
    assert np.array_equal(chosen.initial(5), engine(spec).initial(5))
    assert not np.array_equal(chosen.initial(5), chosen.initial(6))
    assert fast.logits(samples.x).shape == (1, 20, 3)


def test_batch_norm_is_refused_with_its_reason():
    with pytest.raises(ModelError, match="group norm instead of batch norm"):
        OpacusEngine(lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4, 2)))
