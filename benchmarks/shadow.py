"""Shadow models a second against Opacus on the same network, data, sampling rate and one thread each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from opacus import GradSampleModule
from opacus.grad_sample import GradSampleModuleFastGradientClipping
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer_fast_gradient_clipping import DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from benchmarks.measurement import Measurement, in_turns
from coalmine.clients.training.fast.build import engine
from coalmine.clients.training.fast.population import Population
from coalmine.clients.training.models import Activation, Kind, ModelSpec
from coalmine.clients.training.plan import Plan
from coalmine.clients.training.table import table
from coalmine.protocol.dpsgd.mechanism import DpSgd
from coalmine.protocol.dpsgd.optimiser import Sgd

N, BATCH, CLIP, SIGMA, LR = 2000, 256, 1.0, 1.0, 0.3
FOREVER = 10**9
MLP = ModelSpec(Kind.MLP, (64,), 10, hidden=(64,))
CNN = ModelSpec(Kind.CNN, (1, 28, 28), 10, activation=Activation.RELU)


def measure() -> list[Measurement]:
    with threadpool_limits(1):
        one, many, hooks = _rates(_ours(MLP, 1, 80), _ours(MLP, 16, 10), _opacus(_mlp, MLP.shape, 10, _hooks))
        cnn, *modes = _rates(_ours(CNN, 1, 2), _opacus(_cnn, CNN.shape, 2, _hooks), _opacus(_cnn, CNN.shape, 2, _ghost))
    return [
        Measurement("MLP 64-64-10, one model", one, "steps/s"),
        Measurement("MLP 64-64-10, 16 models at once", many, "steps/s"),
        Measurement("MLP 64-64-10, Opacus hooks", hooks, "steps/s"),
        Measurement("MLP: faster than Opacus hooks", max(one, many) / hooks, "x", "at least 12"),
        Measurement("CNN with 26,010 parameters, one model", cnn, "steps/s"),
        Measurement("CNN with 26,010 parameters, Opacus hooks", modes[0], "steps/s"),
        Measurement("CNN with 26,010 parameters, Opacus ghost", modes[1], "steps/s"),
        Measurement("CNN: faster than the faster Opacus mode", cnn / max(modes), "x", "at least 2"),
    ]


@dataclass(frozen=True)
class _Work:
    """Training of so many models for so many steps together."""

    model_steps: int
    run: Callable[[], object]


def _rates(*works: _Work) -> list[float]:
    """Model-steps a second of each, noise, sampling and optimiser included."""
    taken = in_turns([work.run for work in works])
    return [work.model_steps / time for work, time in zip(works, taken, strict=True)]


def _data(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, *shape)).astype(np.float32), rng.integers(0, 10, N)


def _ours(spec: ModelSpec, models: int, steps: int) -> _Work:
    samples = table(*_data(spec.shape), 10, where="benchmark")
    plan = Plan(DpSgd(BATCH / N, SIGMA, CLIP, 1e-5, N), FOREVER, Sgd(LR))
    population = Population(engine(spec), plan, samples, np.ones((models, N), bool), range(models))
    return _Work(models * steps, lambda: population.run(population.progress.step + steps))


Step = Callable[[Tensor, Tensor], None]


def _opacus(
    make: Callable[[], nn.Module], shape: tuple[int, ...], steps: int, how: Callable[[nn.Module], Step]
) -> _Work:
    step, rng = how(make()), np.random.default_rng(0)
    x, y = map(torch.as_tensor, _data(shape))

    def run() -> None:
        for _ in range(steps):
            batch = torch.as_tensor(np.flatnonzero(rng.random(N) < BATCH / N))
            step(x[batch], y[batch])

    return _Work(steps, run)


def _hooks(module: nn.Module) -> Step:
    wrapped = GradSampleModule(module)
    optimiser = DPOptimizer(
        torch.optim.SGD(wrapped.parameters(), lr=LR),
        noise_multiplier=SIGMA,
        max_grad_norm=CLIP,
        expected_batch_size=BATCH,
    )

    def step(x: Tensor, y: Tensor) -> None:
        optimiser.zero_grad()
        nn.functional.cross_entropy(wrapped(x), y).backward()
        optimiser.step()

    return step


def _ghost(module: nn.Module) -> Step:
    wrapped = GradSampleModuleFastGradientClipping(module, max_grad_norm=CLIP, use_ghost_clipping=True)
    optimiser = DPOptimizerFastGradientClipping(
        torch.optim.SGD(wrapped.parameters(), lr=LR),
        noise_multiplier=SIGMA,
        max_grad_norm=CLIP,
        expected_batch_size=BATCH,
    )
    loss = DPLossFastGradientClipping(wrapped, optimiser, nn.CrossEntropyLoss(reduction="mean"))

    def step(x: Tensor, y: Tensor) -> None:
        optimiser.zero_grad()
        loss(wrapped(x), y).backward()
        optimiser.step()

    return step


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))


def _cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, 3),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )
