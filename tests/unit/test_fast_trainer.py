"""The fast trainer against a plain loop over samples with torch's autograd."""

import dataclasses

import numpy as np
import pytest
import torch
from oracles import naive_dpsgd
from torch import nn

from coalmine.clients.training.fast.build import engine
from coalmine.clients.training.fast.population import Population
from coalmine.clients.training.models import Activation, Kind, ModelSpec
from coalmine.clients.training.plan import Augmentation, Execution, Hamp, Plan, Unprotected
from coalmine.clients.training.progress import Progress
from coalmine.clients.training.table import table
from coalmine.protocol.dpsgd.filter import Reach
from coalmine.protocol.dpsgd.mechanism import DpSgd, Sampling
from coalmine.protocol.dpsgd.optimiser import Adam, Sgd
from coalmine.protocol.dpsgd.schedule import FilterSchedule
from coalmine.protocol.dpsgd.signatures import Signature
from coalmine.protocol.errors import ContributionError, StorageError, StudyError

torch.set_num_threads(1)
N, SEEDS = 30, [3, 4, 5]
PRIVACY = DpSgd(q=0.2, sigma=0.8, clip=0.7, delta=1e-5, declared_size=N)


def data(shape=(6,), classes=3, n=N):
    rng = np.random.default_rng(0)
    return table(rng.standard_normal((n, *shape)), rng.integers(0, classes, n), classes, where="test")


def members(models=3, n=N):
    return np.random.default_rng(1).random((models, n)) < 0.7


MLP = ModelSpec(Kind.MLP, (6,), 3, hidden=(5, 4))


def mlp():
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)).double()


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 2, 8, 2, 3),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(2, 4, 4, 2),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(4, 32),
        nn.ReLU(),
        nn.Linear(32, 3),
    ).double()


MODELS = {
    "logistic": (ModelSpec(Kind.LOGISTIC, (6,), 3), lambda: nn.Linear(6, 3).double()),
    "mlp": (MLP, mlp),
    "cnn": (ModelSpec(Kind.CNN, (1, 14, 14), 3, activation=Activation.RELU, width=2), cnn),
}


def against_the_oracle(spec, module, plan, double, tolerance):
    samples = data(spec.shape)
    fast = Population(engine(spec), plan, samples, members(), SEEDS, execution=Execution(double=double))
    start = fast.progress.theta.copy()
    done = fast.run()
    x = torch.as_tensor(samples.x, dtype=torch.float64)
    for row, seed in enumerate(SEEDS):
        theta, dropped = naive_dpsgd.train(
            module(), plan, x, torch.as_tensor(samples.y), members()[row], seed, start[row]
        )
        assert np.abs(done.theta[row] - theta).max() < tolerance
        assert {i: int(done.dropped[row, i]) for i in np.flatnonzero(done.dropped[row] >= 0)} == dropped
        assert plan.filter is None or len(dropped) > 1
        assert np.abs(theta - start[row]).max() > 100 * tolerance


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("double", "tolerance"), [(True, 1e-10), (False, 1e-5)])
def test_every_model_equals_the_loop_over_samples(name, double, tolerance):
    plan = Plan(PRIVACY, 12, Sgd(0.2), FilterSchedule(k=1, every=1, last_epoch=1))
    against_the_oracle(*MODELS[name], plan, double, tolerance)


@pytest.mark.parametrize("kind", Signature)
@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_every_signature_drops_what_the_plain_definition_drops(name, kind):
    plan = Plan(PRIVACY, 11, Sgd(0.2), FilterSchedule(k=2, reach=Reach.PER_CLASS, signature=kind, window=3))
    against_the_oracle(*MODELS[name], plan, True, 1e-10)


@pytest.mark.parametrize("optimiser", [Sgd(0.1, 0.9), Adam(0.05)], ids=["momentum", "adam"])
def test_optimisers(optimiser):
    against_the_oracle(
        *MODELS["mlp"], Plan(PRIVACY, 10, optimiser, FilterSchedule(k=1, reach=Reach.GLOBAL)), True, 1e-10
    )


@pytest.mark.parametrize("q", [0.01, 0.05, 1.0])
def test_batches_of_any_size_also_empty_ones(q):
    privacy = dataclasses.replace(PRIVACY, q=q)
    against_the_oracle(*MODELS["mlp"], Plan(privacy, 6, Sgd(0.2)), True, 1e-10)


def test_a_model_does_not_depend_on_its_neighbours():
    plan = Plan(PRIVACY, 12, Sgd(0.2), FilterSchedule(k=1))
    for double, tolerance in ((True, 1e-12), (False, 1e-5)):
        execution = Execution(double=double)
        together = Population(engine(MLP), plan, data(), members(), SEEDS, execution=execution).run()
        alone = Population(engine(MLP), plan, data(), members()[1:2], SEEDS[1:2], execution=execution).run()
        assert np.abs(together.theta[1] - alone.theta[0]).max() < tolerance
        assert (together.dropped[1] == alone.dropped[0]).all()


def test_absent_samples_do_not_change_a_bit_of_anyones_signature():
    plan = Plan(PRIVACY, 12, Sgd(0.2), FilterSchedule(k=1))
    one = Population(engine(MLP), plan, data(n=700), members(2, 700), [1, 2])
    rows = members(2, 700)
    rows[:, ::2] = False
    other = Population(engine(MLP), plan, data(n=700), rows, [1, 2])
    assert np.array_equal(one.signatures(one.progress), other.signatures(other.progress))


def test_a_run_that_was_killed_goes_on_to_the_same_model(tmp_path):
    for optimiser in (Sgd(0.1, 0.5), Adam(0.05)):
        plan = Plan(PRIVACY, 13, optimiser, FilterSchedule(k=1, signature=Signature.DIRECTION_UNIQUENESS, window=4))
        whole = Population(engine(MLP), plan, data(), members(), SEEDS).run()
        for stop in (0, 1, 5, 6, 12):
            first = Population(engine(MLP), plan, data(), members(), SEEDS)
            first.run(until=stop).save(tmp_path / "progress.npz")
            again = Population(engine(MLP), plan, data(), members(), SEEDS)
            again.resume(Progress.load(tmp_path / "progress.npz"))
            done = again.run()
            assert done.step == 13
            assert np.array_equal(done.theta, whole.theta)
            assert np.array_equal(done.dropped, whole.dropped)
    assert (tmp_path / "progress.npz").stat().st_mode & 0o077 == 0
    (tmp_path / "progress.npz").write_bytes(b"PK nonsense")
    with pytest.raises(StorageError, match="checkpoint"):
        Progress.load(tmp_path / "progress.npz")


def test_shuffled_batches_use_every_active_sample_once_an_epoch():
    privacy = dataclasses.replace(PRIVACY, sampling=Sampling.SHUFFLED)
    population = Population(engine(MLP), Plan(privacy, 10), data(), members(), SEEDS)
    counts = sum(
        population._batches(dataclasses.replace(population.progress, step=step)).astype(int) for step in range(5)
    )
    assert (counts == members()).all()


def test_augmented_views_are_averaged_before_the_clip():
    """One sample, one step: the update is the clipped mean gradient of its views, which the sample's id decides."""
    from coalmine.clients.training.fast.views import views
    from coalmine.protocol.randomness import Purpose, stream

    privacy = DpSgd(q=1.0, sigma=1e-9, clip=0.05, delta=1e-5, declared_size=1)
    only = np.array([[False, False, True, False]])
    for name, kind in (
        ("cnn", Augmentation(views=3, shift=2, flip=True, jitter=0.1)),
        ("mlp", Augmentation(views=2, jitter=0.5)),
        ("mlp", Augmentation(views=8, jitter=0.5)),
    ):
        spec, module = MODELS[name]
        samples = data(spec.shape, n=4)
        population = Population(
            engine(spec),
            Plan(privacy, 1, Sgd(1.0), augmentation=kind),
            samples,
            only,
            [7],
            execution=Execution(double=True),
        )
        start = population.progress.theta[0]
        moved = start - population.run().theta[0]
        x = torch.as_tensor(samples.x[2:3], dtype=torch.float64)
        seen = views(x, np.array([2]), 4, kind, stream(7, Purpose.AUGMENTATION, 0))[0]
        assert len({tuple(view.flatten().tolist()) for view in seen}) == len(seen)
        net = module()
        naive_dpsgd.load(net, start)
        gradient, _ = naive_dpsgd.gradient(net, seen, torch.as_tensor(samples.y[2]))
        assert np.linalg.norm(gradient) > 0.05
        assert np.allclose(moved, gradient * 0.05 / np.linalg.norm(gradient), atol=1e-8)


def test_hamp_pulls_confidence_down_and_unprotected_training_is_plain_sgd():
    samples, everyone = data(), np.ones((1, N), bool)
    ordinary = Plan(Unprotected(1.0, N), 300, Sgd(1.0))
    confident = Population(engine(MLP), ordinary, samples, everyone, [1])
    theta = confident.progress.theta[0].copy()
    confident.run()
    soft = Population(engine(MLP), dataclasses.replace(ordinary, loss=Hamp(0.6, 0.01)), samples, everyone, [1])
    soft.run()

    def confidence(population):
        z = population.logits(samples.x)[0]
        return (np.exp(z) / np.exp(z).sum(1, keepdims=True)).max(1).mean()

    assert confidence(soft) < confidence(confident) - 0.1
    net = mlp()
    naive_dpsgd.load(net, theta)
    reference = torch.optim.SGD(net.parameters(), lr=1.0)
    for _ in range(20):
        reference.zero_grad()
        nn.functional.cross_entropy(net(torch.as_tensor(samples.x).double()), torch.as_tensor(samples.y)).backward()
        reference.step()
    twenty = Population(
        engine(MLP), dataclasses.replace(ordinary, steps=20), samples, everyone, [1], execution=Execution(double=True)
    ).run()
    flat = torch.nn.utils.parameters_to_vector(net.parameters()).detach().numpy()
    assert np.abs(twenty.theta[0] - flat).max() < 1e-10


def test_a_diverging_model_is_named_and_the_last_good_step_kept():
    population = Population(engine(MLP), Plan(PRIVACY, 5), data(), members(), SEEDS)
    theta = population.progress.theta.copy()
    theta[1, 37] = np.nan
    population.resume(dataclasses.replace(population.progress, theta=theta, step=2))
    with pytest.raises(ContributionError, match=r"step 2, model 1, layer \d \(linear\)"):
        population.run()
    assert population.progress.step == 2


def test_what_does_not_fit_is_refused():
    with pytest.raises(StudyError, match="membership"):
        Population(engine(MLP), Plan(PRIVACY, 5), data(), members()[:, :-1], SEEDS)
    with pytest.raises(StudyError, match="moved or mirrored"):
        Population(engine(MLP), Plan(PRIVACY, 5, augmentation=Augmentation(shift=1)), data(), members(), SEEDS)
    with pytest.raises(StudyError, match="device"):
        Population(engine(MLP), Plan(PRIVACY, 5), data(), members(), SEEDS, execution=Execution(device="tpu"))
