"""DP fine-tuning: the noise and the participation are what the accounting was told."""

import numpy as np
import pytest
import torch
from fakes.small_models import PUBLIC, SHAPE, small_pieces
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from scipy.stats import binom, chi2

from coalmine.protocol.privacy import Mechanism
from coalmine.server.synthesise import training
from coalmine.server.synthesise.corpus import Record
from coalmine.server.synthesise.lessons import lessons
from coalmine.server.synthesise.recipe import Budget
from coalmine.server.synthesise.tiny_model import TinyModel

pytestmark = [pytest.mark.statistical, pytest.mark.filterwarnings("ignore:Full backward hook is firing")]

PIECES = small_pieces()
LESSONS = lessons((Record(0, text, "") for text in PUBLIC), PIECES, SHAPE.context)


def update(users, q, sigma, clip, expected, seed):
    model, plain = (TinyModel(PIECES.size, SHAPE, 0) for _ in range(2))
    watched = GradSampleModule(model, loss_reduction="sum")
    optimizer = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=1.0),
        noise_multiplier=sigma,
        max_grad_norm=clip,
        expected_batch_size=expected,
        generator=torch.Generator().manual_seed(seed),
    )
    training._private_step(watched, optimizer, list(model.parameters()), users, 2, q, np.random.default_rng(seed))
    return torch.cat([
        (before - after).detach().flatten().double()
        for before, after in zip(plain.parameters(), model.parameters(), strict=True)
    ]).numpy()  # fmt: skip


@pytest.mark.parametrize("present", [False, True])
def test_noise_has_the_scale_of_the_claim(present):
    """With nobody there a step is noise alone; with somebody there the difference to the noise-free step is."""
    sigma, clip, expected = 1.3, 0.7, 8
    users = [LESSONS[start : start + 2] for start in range(0, 80, 2)]
    q = 1.1 if present else 0.0
    noise = update(users, q, sigma, clip, expected, 5)
    if present:
        noise = noise - update(users, q, 0.0, clip, expected, 5)
    size = len(noise)
    assert size > 20_000

    def accepted(claimed):
        statistic = float(((noise / (claimed * clip / expected)) ** 2).sum())
        return chi2.ppf(1e-7, size) < statistic < chi2.isf(1e-7, size)

    assert accepted(sigma)
    assert not accepted(sigma * 2 / 3)
    assert not accepted(sigma * 3 / 2)
    assert abs(noise.mean()) < 5.5 * sigma * clip / expected / np.sqrt(size)


def test_users_take_part_at_the_rate_of_the_claim(monkeypatch):
    counted = []
    real = training._some
    monkeypatch.setattr(training, "_some", lambda records, most, rng: counted.append(1) or real(records, most, rng))
    users = [LESSONS[start : start + 1] for start in range(60)]
    mechanism = Mechanism(q=0.1, sigma=1.0, clip=1.0)
    training.fit_privately(
        TinyModel(PIECES.size, SHAPE, 0), users, Budget(steps=60, batch=6), mechanism, np.random.default_rng(2), 3,
        lambda done: None,
    )  # fmt: skip
    trials = 60 * 60

    def accepted(rate):
        return binom.ppf(1e-7, trials, rate) <= len(counted) <= binom.isf(1e-7, trials, rate)

    assert accepted(0.1)
    assert not accepted(0.06)
    assert not accepted(0.16)
