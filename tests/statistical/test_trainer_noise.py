"""The fast trainer's noise and sampling are what its claim says, seen through a canary in gradient space."""

import numpy as np
import pytest
import torch

from coalmine.auditor.membership.white_box import white_box
from coalmine.clients.training.fast.build import engine
from coalmine.clients.training.fast.population import Population
from coalmine.clients.training.gradient_canaries import GradientCanaries
from coalmine.clients.training.models import Kind, ModelSpec
from coalmine.clients.training.plan import Plan
from coalmine.clients.training.table import table
from coalmine.protocol.dpsgd.claims import claim
from coalmine.protocol.dpsgd.mechanism import DpSgd
from coalmine.protocol.dpsgd.optimiser import Sgd
from coalmine.protocol.dpsgd.schedule import FilterSchedule

pytestmark = pytest.mark.statistical
torch.set_num_threads(1)

STEPS, MODELS, N = 100, 120, 40
PRIVACY = DpSgd(q=0.1, sigma=1.13, clip=0.5, delta=1e-5, declared_size=N)


def observed(privacy):
    """(2, MODELS, STEPS) y_t / C with and without a canary at a weight no sample touches: feature 0 is always 0."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((N, 5))
    x[:, 0] = 0
    data = table(x, rng.integers(0, 2, N), 2, where="test")
    members = np.ones((2 * MODELS, N + 1), bool)
    members[MODELS:, N] = False
    canary = GradientCanaries(np.array([0]), np.array([3.0]), np.array([0]))
    schedule = FilterSchedule(k=1, first_epoch=30)  # no filtering falls into the run
    population = Population(
        engine(ModelSpec(Kind.LOGISTIC, (5,), 2)),
        Plan(privacy, STEPS, Sgd(0.1), schedule),
        data,
        members,
        np.arange(2 * MODELS),
        gradient_canaries=canary,
    )
    seen = []
    population.run(watch=lambda step, update: seen.append(update[:, 0] * privacy.batch_size / privacy.clip))
    return np.array(seen).T.reshape(2, MODELS, STEPS)


def test_the_white_box_epsilon_is_the_claims():
    promised = claim(PRIVACY, STEPS)
    present, absent = observed(PRIVACY)
    found = white_box(promised, 1.0, present, absent, 1e-6, np.random.default_rng(1))[0]
    assert 0.95 * promised.eps_pld_upper <= found.eps_lower <= promised.eps_pld_upper
    assert found.details["noise_fits"] > 1e-8
    assert abs(present.mean() - 0.1) < 6 * np.sqrt((1.13**2 + 0.09) / present.size)


def test_missing_noise_is_seen():
    promised = claim(PRIVACY, STEPS)
    less = DpSgd(q=0.1, sigma=1.13 * 2 / 3, clip=0.5, delta=1e-5, declared_size=N)
    seen = white_box(promised, 1.0, *observed(less), 1e-6, np.random.default_rng(1))[0]
    assert seen.eps_lower > promised.eps_pld_upper
