"""Clients that hold parts and one process that holds everything train the same model."""

import numpy as np
import pytest
import torch

from coalmine.clients.training import partitions
from coalmine.clients.training.fast.build import engine
from coalmine.clients.training.fast.holder import Holder
from coalmine.clients.training.fast.population import Population
from coalmine.clients.training.models import Kind, ModelSpec
from coalmine.clients.training.plan import Execution, Plan
from coalmine.clients.training.table import table
from coalmine.protocol.dpsgd.filter import drop
from coalmine.protocol.dpsgd.fixed_point import fraction_bits, whole
from coalmine.protocol.dpsgd.mechanism import DpSgd
from coalmine.protocol.dpsgd.optimiser import Adam, Sgd, State
from coalmine.protocol.dpsgd.schedule import FilterSchedule
from coalmine.protocol.dpsgd.signatures import Signature
from coalmine.protocol.dpsgd.step import noised_gradient
from coalmine.protocol.errors import ContributionError, DataError, StudyError
from coalmine.protocol.randomness import Purpose, stream

torch.set_num_threads(1)
N, SEED = 80, 5
SPEC = ModelSpec(Kind.MLP, (6,), 3, hidden=(5,))
PRIVACY = DpSgd(q=0.1, sigma=0.8, clip=0.7, delta=1e-5, declared_size=N)


def data():
    rng = np.random.default_rng(0)
    return table(rng.standard_normal((N, 6)), rng.integers(0, 3, N), 3, where="test")


def federated(plan, parts, execution, steps):
    """The server's loop with a filter over all clients: ((P,) parameters, {id: step})."""
    everything, chosen = data(), engine(SPEC)
    holders = [Holder(chosen, plan, everything.take(part), part, N, SEED, execution) for part in parts]
    theta, state, updates, gone = chosen.initial(SEED), State(), [], {}
    due = set(plan.filter.steps(plan.steps, PRIVACY.q)) if plan.filter else set()
    for step in range(steps):
        if step in due:
            window = np.array(updates[-plan.filter.window :]).reshape(-1, len(theta))
            ranked = [holder.ranked(theta, step, window) for holder in holders]
            columns = (np.concatenate([getattr(one, name) for one in ranked]) for name in ("ids", "labels", "scores"))
            dropped = drop(*columns, plan.filter.k, plan.filter.reach)
            gone |= dict.fromkeys(dropped.tolist(), step)
            for holder in holders:
                holder.forget(dropped)
        total = sum(holder.clipped_sum(theta, step) for holder in holders)
        updates.append(noised_gradient(total, PRIVACY, stream(SEED, Purpose.NOISE, step)))
        theta, state = plan.optimiser.step(theta, updates[-1], state)
    return theta, gone


@pytest.mark.parametrize(("double", "tolerance"), [(True, 1e-10), (False, 1e-4)])
@pytest.mark.parametrize("optimiser", [Sgd(0.2, 0.5), Adam(0.01)], ids=["momentum", "adam"])
def test_ten_clients_are_one_process(double, tolerance, optimiser):
    execution = Execution(double=double)
    plan = Plan(PRIVACY, 300, optimiser, FilterSchedule(k=1, last_epoch=9))
    parts = [*partitions.iid(data(), 9, np.random.default_rng(0)), np.zeros(0, np.int64)]
    theta, gone = federated(plan, parts, execution, 300)
    central = Population(engine(SPEC), plan, data(), np.ones((1, N), bool), [SEED], execution=execution).run()
    assert {int(i): 10 * int(central.dropped[0, i]) for i in np.flatnonzero(central.dropped[0] >= 0)} == gone
    assert len(gone) == 30
    assert np.abs(theta - central.theta[0]).max() < tolerance


def test_signatures_with_a_window_and_clients_of_one_class():
    execution = Execution(double=True)
    schedule = FilterSchedule(k=1, signature=Signature.DIRECTION_UNIQUENESS, window=3)
    plan = Plan(PRIVACY, 30, Sgd(0.2), schedule)
    parts = partitions.by_class(data(), 3, 1, np.random.default_rng(0))
    theta, gone = federated(plan, parts, execution, 30)
    central = Population(engine(SPEC), plan, data(), np.ones((1, N), bool), [SEED], execution=execution).run()
    assert np.abs(theta - central.theta[0]).max() < 1e-10
    assert set(np.flatnonzero(central.dropped[0] >= 0).tolist()) == set(gone)


def test_every_client_filters_its_own():
    plan = Plan(PRIVACY, 10, Sgd(0.2), FilterSchedule(k=1))
    chosen, part = engine(SPEC), np.arange(10, 40)
    holder = Holder(chosen, plan, data().take(part), part, N, SEED)
    before = holder.active
    assert np.flatnonzero(before).tolist() == part.tolist()
    theta = chosen.initial(SEED)
    mine = holder.ranked(theta, 0, np.zeros((0, len(theta))))
    holder.filter_own(theta, 0, np.zeros((0, len(theta))))
    gone = np.flatnonzero(before & ~holder.active)
    assert gone.tolist() == drop(mine.ids, mine.labels, mine.scores, 1, plan.filter.reach).tolist()
    assert len(gone) == 3
    again = Holder(chosen, plan, data().take(part), part, N, SEED)
    again.restore(holder.active)
    assert np.array_equal(again.clipped_sum(theta, 3), holder.clipped_sum(theta, 3))


def test_a_client_without_samples_adds_nothing():
    nobody = Holder(engine(SPEC), Plan(PRIVACY, 5, filter=FilterSchedule()), data().take([]), [], N, SEED)
    theta = engine(SPEC).initial(SEED)
    assert not nobody.clipped_sum(theta, 0).any()
    nobody.filter_own(theta, 0, np.zeros((0, len(theta))))


def test_what_does_not_fit_is_refused():
    for ids in ([0, 0], [0], [0, N], [-1, 0]):
        with pytest.raises(DataError, match="client"):
            Holder(engine(SPEC), Plan(PRIVACY, 5), data().take([0, 1]), ids, N, SEED)
    plain = Holder(engine(SPEC), Plan(PRIVACY, 5), data().take([0]), [0], N, SEED)
    with pytest.raises(StudyError, match="filter"):
        plain.filter_own(engine(SPEC).initial(0), 0, np.zeros((0, 53)))


def test_changed_data_have_another_digest():
    one, other = data(), data()
    assert one.digest == other.digest
    other.x[3, 2] += 1
    assert one.digest != other.digest
    assert one.take([0, 1]).digest != one.take([1, 0]).digest


@pytest.mark.parametrize("double", [True, False])
def test_integer_sums_are_the_same_for_any_split(double):
    execution, plan, everything, chosen = Execution(double=double), Plan(PRIVACY, 5), data(), engine(SPEC)
    theta = chosen.initial(SEED)
    splits = [[np.arange(N)], *(partitions.iid(everything, n, np.random.default_rng(n)) for n in (2, 7, 80))]
    totals = []
    for parts in splits:
        holders = [Holder(chosen, plan, everything.take(part), part, N, SEED, execution) for part in parts]
        totals.append(np.sum([holder.whole_sum(theta, 3, 44) for holder in holders], axis=0))
    assert all(np.array_equal(total, totals[0]) for total in totals)
    central = Holder(chosen, plan, everything, np.arange(N), N, SEED, execution)
    exact = central.clipped_sum(theta, 3)
    assert np.abs(totals[0] * (PRIVACY.clip / 2**44) - exact).max() < (1e-11 if double else 1e-5)
    assert np.abs(exact).max() > 0.1


def test_an_integer_gradient_is_never_longer_than_the_clip():
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((50, 9)) * 10.0 ** rng.integers(-3, 2, (50, 1))
    rows *= np.minimum(
        1, (1 + 1e-7) * 0.7 / np.linalg.norm(rows, axis=1, keepdims=True)
    )  # as single precision leaves it
    for row in rows:
        units = [int(unit) for unit in whole(row[None], 0.7, 44)]
        assert sum(unit * unit for unit in units) <= (2**44) ** 2
    assert fraction_bits(1) == fraction_bits(2**18) == 44
    assert fraction_bits(2**20 + 1) == 41


def test_a_gradient_that_is_no_number_is_refused():
    with pytest.raises(ContributionError, match="not a number"):
        whole(np.array([[np.nan, 1.0]]), 1.0, 44)


def test_integers_do_not_depend_on_how_gradients_lie_in_memory():
    rows = np.random.default_rng(3).standard_normal((40, 300))
    total = whole(rows, 1.0, 44)
    assert np.array_equal(whole(np.asfortranarray(rows), 1.0, 44), total)
    assert np.array_equal(sum(whole(row[None], 1.0, 44) for row in rows), total)
