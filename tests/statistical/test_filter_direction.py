"""End to end on a small table: filtering removes what a crafted sample leaks, but not what a gradient group does."""

import numpy as np
import pytest
import torch

from coalmine.auditor.membership import canaries, scores
from coalmine.auditor.membership.conventions import all_conventions
from coalmine.auditor.membership.gradient_groups import just_below_the_filter, one_hot
from coalmine.auditor.membership.suite import finding
from coalmine.clients.training.fast.build import engine
from coalmine.clients.training.fast.crafting import pretrained
from coalmine.clients.training.fast.population import Population
from coalmine.clients.training.gradient_canaries import GradientCanaries
from coalmine.clients.training.models import Kind, ModelSpec
from coalmine.clients.training.plan import Execution, Plan
from coalmine.clients.training.source import SourceSpec, samples
from coalmine.clients.training.table import table
from coalmine.protocol.dpsgd.claims import claim
from coalmine.protocol.dpsgd.mechanism import DpSgd
from coalmine.protocol.dpsgd.optimiser import Sgd
from coalmine.protocol.dpsgd.schedule import FilterSchedule
from coalmine.protocol.finding import Verdict

pytestmark = pytest.mark.statistical
torch.set_num_threads(1)

N, MODELS, STEPS = 150, 60, 60
SPEC = ModelSpec(Kind.MLP, (9,), 3, hidden=(6,))
PRIVACY = DpSgd(q=0.2, sigma=0.9, clip=1.0, delta=1e-5, declared_size=N)
SCHEDULE = FilterSchedule(k=2, last_epoch=3)
EXECUTION = Execution(models_at_once=2 * MODELS)


def blobs(n, seed):
    """Three classes; feature 0 is always 0, so its weights belong to nobody."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    x = 0.3 * rng.standard_normal((n, 9)) + np.eye(9)[y + 1]
    x[:, 0] = 0
    return table(x, y, 3, where="test")


PRIVATE, PUBLIC = blobs(N, 1), blobs(400, 2)


def members(extra):
    found = np.ones((2 * MODELS, N + extra), bool)
    found[MODELS:, N:] = False
    return found


def epsilons(one, zero):
    evidence = all_conventions(one, zero, PRIVACY.delta, 0.05, np.random.default_rng(3))
    return {found.method: found for found in evidence}


def test_a_mislabeled_canary_leaks_without_the_filter_and_not_with_it():
    chosen = engine(SPEC)
    start = pretrained(chosen, PUBLIC, 200, 0)
    canary = canaries.mislabeled(PUBLIC.x, PUBLIC.y, 3, np.random.default_rng(4))
    data = PRIVATE.with_rows(canary.x[None], [canary.y])
    found, accuracy, promised = {}, {}, claim(PRIVACY, STEPS)
    for schedule in (None, SCHEDULE):
        population = Population(
            chosen,
            Plan(PRIVACY, STEPS, Sgd(0.5), schedule),
            data,
            members(1),
            np.arange(2 * MODELS),
            start=start,
            execution=EXECUTION,
        )
        done = population.run()
        score = scores.logit_scaled_confidence(population.logits(canary.x[None])[:, 0], canary.y)
        found[schedule] = epsilons(score[:MODELS], score[MODELS:])
        accuracy[schedule] = (population.logits(PUBLIC.x).argmax(axis=2) == PUBLIC.y).mean()
        assert finding("mislabeled", promised, tuple(found[schedule].values())).verdict is Verdict.CONSISTENT
    assert found[None]["gdp"].eps_lower > 2
    assert found[None]["clopper_pearson_holdout"].eps_lower > 0.3
    assert found[SCHEDULE]["gdp"].eps_lower < 0.5 * found[None]["gdp"].eps_lower
    assert found[SCHEDULE]["clopper_pearson_bonferroni"].eps_lower == 0
    assert (done.dropped[:MODELS, N] == 0).all()
    assert accuracy[SCHEDULE] > accuracy[None] - 0.05


def test_digits_show_a_blank_canary_without_the_filter_and_hide_it_with_it():
    """The shipped study of digits (random start, lr 1, k = 3 in the first ten epochs) with a third of its models."""
    digits = samples(SourceSpec("digits", train=1400))
    privacy, steps = DpSgd(q=0.1, sigma=1.13, clip=1.0, delta=1e-5, declared_size=1400), 300
    canary = canaries.blank(digits.train.shape, 0)
    data = digits.train.with_rows(canary.x[None], [canary.y])
    inside = np.ones((2 * MODELS, len(data)), bool)
    inside[MODELS:, -1] = False
    promised, found, accuracy = claim(privacy, steps), {}, {}
    assert promised.eps_prv == pytest.approx(10, abs=0.3)
    for schedule in (None, FilterSchedule(k=3, last_epoch=9)):
        population = Population(
            engine(ModelSpec(Kind.MLP, digits.train.shape, 10, hidden=(32,))),
            Plan(privacy, steps, Sgd(1.0), schedule),
            data,
            inside,
            np.arange(2 * MODELS),
            execution=EXECUTION,
        )
        done = population.run()
        score = scores.logit_scaled_confidence(population.logits(canary.x[None])[:, 0], canary.y)
        found[schedule] = epsilons(score[:MODELS], score[MODELS:])
        accuracy[schedule] = (population.logits(digits.test.x).argmax(axis=2) == digits.test.y).mean()
        assert finding("blank", promised, tuple(found[schedule].values())).verdict is Verdict.CONSISTENT
    (schedule,) = found.keys() - {None}
    assert found[None]["gdp"].eps_lower > 2
    assert found[schedule]["gdp"].eps_lower < 0.5
    assert found[schedule]["clopper_pearson_bonferroni"].eps_lower == 0
    assert (done.dropped[:MODELS, -1] >= 0).mean() > 0.9
    assert accuracy[schedule] > accuracy[None] - 0.04


def test_a_gradient_group_below_the_filter_is_not_helped():
    chosen = engine(SPEC)
    start = pretrained(chosen, PUBLIC, 200, 0)
    plan = Plan(PRIVACY, STEPS, Sgd(0.5), SCHEDULE)
    alone = Population(chosen, plan, PRIVATE, np.ones((1, N), bool), [999], start=start)
    norms = []
    for step in SCHEDULE.steps(STEPS, PRIVACY.q):
        now = alone.run(until=step)
        norms.append(np.where(now.active[0], alone.signatures(now)[0], np.nan))
    group = one_hot(30, 0, 0.9 * just_below_the_filter(np.array(norms), PRIVATE.y, SCHEDULE.k), 3)
    gradient = GradientCanaries(group.coordinate, group.size, group.label)
    bounds = {}
    for schedule in (None, SCHEDULE):
        done = Population(
            chosen,
            Plan(PRIVACY, STEPS, Sgd(0.5), schedule),
            PRIVATE,
            members(30),
            np.arange(2 * MODELS),
            start=start,
            gradient_canaries=gradient,
            execution=EXECUTION,
        ).run()
        stayed = (done.dropped[:MODELS, N:] < 0).mean()
        score = -done.theta[:, 0]
        bounds[schedule] = epsilons(score[:MODELS], score[MODELS:])["gdp"].eps_lower
    assert stayed > 0.7
    assert min(bounds.values()) > 2
