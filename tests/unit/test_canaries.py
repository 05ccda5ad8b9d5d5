import numpy as np
import pytest
import torch

from coalmine.auditor.membership import canaries
from coalmine.auditor.membership.gradient_groups import cancelling, just_below_the_filter, one_hot
from coalmine.clients.training.fast.build import engine
from coalmine.clients.training.fast.crafting import exposure, input_gradients, pretrained
from coalmine.clients.training.fast.population import Population
from coalmine.clients.training.gradient_canaries import GradientCanaries
from coalmine.clients.training.models import Kind, ModelSpec
from coalmine.clients.training.plan import Execution, Plan
from coalmine.clients.training.table import table
from coalmine.protocol.dpsgd.mechanism import DpSgd
from coalmine.protocol.dpsgd.optimiser import Sgd
from coalmine.protocol.dpsgd.schedule import FilterSchedule
from coalmine.protocol.dpsgd.signatures import Signature
from coalmine.protocol.errors import StudyError

torch.set_num_threads(1)
SPEC = ModelSpec(Kind.MLP, (6,), 3, hidden=(8,))


def rng(seed=0):
    return np.random.default_rng(seed)


def blobs(n=300):
    y = rng(1).integers(0, 3, n)
    return table(rng(2).standard_normal((n, 6)) * 0.4 + np.eye(6)[y] * 2, y, 3, where="test")


@pytest.fixture(scope="module")
def reference():
    chosen = engine(SPEC)
    return chosen, pretrained(chosen, blobs(), 200, 0)


def test_pretraining_learns(reference):
    chosen, theta = reference
    logits = chosen.logits(torch.as_tensor(theta)[None], torch.as_tensor(blobs().x, dtype=torch.float64))[0]
    assert (logits.argmax(1).numpy() == blobs().y).mean() > 0.95


def test_simple_canaries():
    assert canaries.blank((1, 4, 4), 3).x.sum() == 0
    data = blobs()
    for seed in range(30):
        canary = canaries.mislabeled(data.x, data.y, 3, rng(seed))
        row = int(np.flatnonzero((data.x == canary.x).all(axis=1))[0])
        assert canary.y != data.y[row]
        assert 0 <= canary.y < 3
        assert not canaries.already_there(canary, data.x, data.y)
    there = canaries.Canary("copy", data.x[4].astype(float), int(data.y[4]))
    assert canaries.already_there(there, data.x, data.y)
    assert not canaries.already_there(there, data.x[:0], data.y[:0])
    half = canaries.interpolated(there, 0.5)
    assert np.allclose(half.x, there.x / 2)
    assert canaries.interpolated(there, 0.0).x.sum() == 0
    bright = canaries.sparse((1, 8, 8), 10, rng(), value=2.0)
    assert sorted(bright.x.ravel())[-6:] == [0, 2, 2, 2, 2, 2]
    assert {canaries.sparse((4,), 10, rng(seed), lit=1).y for seed in range(200)} == set(range(10))
    for wrong in (
        lambda: canaries.interpolated(there, 1.5),
        lambda: canaries.sparse((3,), 2, rng()),
        lambda: canaries.mislabeled(data.x[:0], data.y[:0], 3, rng()),
        lambda: canaries.clipbkd(data.x[:1], lambda x: x),
    ):
        with pytest.raises(StudyError):
            wrong()


def test_clipbkd_lies_where_public_data_do_not_vary():
    x = rng().standard_normal((500, 5)) * [3, 2, 0.01, 1, 2]
    canary = canaries.clipbkd(x, lambda point: np.array([0.0, -4.0, 2.0]))
    assert abs(canary.x[2]) == pytest.approx(np.linalg.norm(canary.x), rel=1e-3)
    assert np.linalg.norm(canary.x) == pytest.approx(np.sqrt((x**2).sum(axis=1).mean()))
    assert canary.y == 1


def test_gradients_by_the_input_are_finite_differences(reference):
    chosen, theta = reference
    x, y, step = blobs().x[0].astype(float), int(blobs().y[0]), 1e-6
    seen = exposure(chosen, theta, x, y)
    assert np.allclose(seen.by_input_loss, input_gradients(chosen, theta, x[None], [y])[0])
    for j in range(6):
        high, low = (exposure(chosen, theta, x + sign * step * np.eye(6)[j], y) for sign in (1, -1))
        assert (high.loss - low.loss) / (2 * step) == pytest.approx(seen.by_input_loss[j], rel=1e-4, abs=1e-8)
        assert (high.norm - low.norm) / (2 * step) == pytest.approx(seen.by_input_norm[j], rel=1e-4, abs=1e-8)


def test_fgsm_raises_the_loss(reference):
    chosen, theta = reference
    for row in range(5):
        x, y = blobs().x[row].astype(float), int(blobs().y[row])
        canary = canaries.fgsm(x, y, input_gradients(chosen, theta, x[None], [y])[0], 0.5, -5.0, 5.0)
        assert exposure(chosen, theta, canary.x, y).loss > exposure(chosen, theta, x, y).loss
        assert np.abs(canary.x - x).max() <= 0.5 + 1e-12


def test_a_defence_aware_canary_goes_below_the_filter_and_keeps_a_loss(reference):
    chosen, theta = reference
    start = canaries.mislabeled(blobs().x, blobs().y, 3, rng(3))
    before = exposure(chosen, theta, start.x, start.y)
    ordinary = [exposure(chosen, theta, x, int(y)) for x, y in zip(blobs().x[:60], blobs().y[:60], strict=True)]
    ceiling = before.norm / 2

    def exposed(x):
        seen = exposure(chosen, theta, x, start.y)
        return seen.loss, seen.norm, seen.by_input_loss, seen.by_input_norm

    canary = canaries.defence_aware(start, exposed, ceiling, -5.0, 5.0)
    after = exposure(chosen, theta, canary.x, canary.y)
    assert before.norm > ceiling >= after.norm
    assert after.loss > 3 * np.median([seen.loss for seen in ordinary])
    with pytest.raises(StudyError, match="defence_aware"):
        canaries.defence_aware(start, exposed, 0.0, -5.0, 5.0)


def test_groups_in_gradient_space():
    group = one_hot(7, 11, 0.5, 3)
    assert np.bincount(group.label).tolist() == [3, 2, 2]
    a, b = cancelling(4, 11, 0.5, 2)
    assert (a.size == -5.0).all()
    assert (b.size == 0.5).all()
    norms = np.array([[5.0, 4, 3, 9, 8, 1], [5.0, np.nan, 3, 2, 1, 6]])
    labels = np.array([0, 0, 0, 1, 1, 1])
    assert just_below_the_filter(norms, labels, 1) == 2.0
    with pytest.raises(StudyError, match="class 0"):
        just_below_the_filter(norms, labels, 2)
    for wrong in (
        lambda: one_hot(0, 1, 1.0, 2),
        lambda: one_hot(3, 1, 0.0, 2),
        lambda: cancelling(3, 1, 1.0, 2, bait=1),
    ):
        with pytest.raises(StudyError):
            wrong()


def trained(group, schedule, *, members=None, steps=20, seed=0):
    """Drops and the watched updates' canary coordinate of two models: without and with the gradient canaries."""
    data, m = blobs(60), len(group.size)
    present = np.ones((2, 60 + m), bool)
    present[0, 60:] = False
    population = Population(
        engine(SPEC),
        Plan(DpSgd(0.5, 1e-6, 1.0, 1e-5, 60), steps, Sgd(0.1), schedule),
        data,
        present,
        [seed, seed],
        gradient_canaries=GradientCanaries(group.coordinate, group.size, group.label),
        execution=Execution(double=True),
    )
    watched = []
    done = population.run(watch=lambda step, update: watched.append(update.copy()))
    return done, np.array(watched)


def test_gradient_canaries_add_what_they_are_clipped_to_at_their_coordinate():
    group = one_hot(4, 5, 3.0, 3)
    _, watched = trained(group, None, steps=1)
    added = (watched[0, 1] - watched[0, 0]) * 30
    assert np.abs(np.delete(added, 5)).max() < 1e-9
    assert round(added[5], 4) in (0, 1, 2, 3, 4)
    _, watched = trained(one_hot(4, 5, 0.25, 3), None, steps=30)
    assert set(np.round((watched[0:1, 1, 5] - watched[0:1, 0, 5]) * 30 / 0.25, 4)) <= {0, 1, 2, 3, 4}


def test_a_group_below_the_filter_stays_and_one_above_it_goes():
    schedule = FilterSchedule(k=2)
    loud, _ = trained(one_hot(6, 5, 1e3, 3), schedule, steps=2)
    quiet, _ = trained(one_hot(6, 5, 1e-6, 3), schedule, steps=2)
    assert (loud.dropped[1, 60:] == 0).all()
    assert (quiet.dropped[1, 60:] == -1).all()


@pytest.mark.parametrize("kind", [kind for kind in Signature if kind.startswith(("grad", "clip", "dir", "proj"))])
def test_gradient_canaries_have_the_signature_of_their_gradient(kind):
    from coalmine.protocol.dpsgd.signatures import Surroundings, public_directions, signature
    from coalmine.protocol.randomness import Purpose, stream

    data, group = blobs(30), cancelling(2, 5, 0.5, 3)[0]
    plan = Plan(
        DpSgd(0.5, 1.0, 1.0, 1e-5, 30), 6, Sgd(0.1), FilterSchedule(k=1, signature=kind, first_epoch=2, window=3)
    )
    population = Population(
        engine(SPEC),
        plan,
        data,
        np.ones((1, 32), bool),
        [4],
        gradient_canaries=GradientCanaries(group.coordinate, group.size, group.label),
        execution=Execution(double=True),
    )
    updates = []
    population.run(until=4, watch=lambda step, update: updates.append(update[0]))
    found = population.signatures(population.progress)[0, 30:]
    gradient = np.zeros(population.progress.theta.shape[1])
    gradient[5] = group.size[0]
    directions = public_directions(stream(4, Purpose.DIRECTIONS), 16, len(gradient))
    expected = signature(kind, gradient, np.zeros(3), 0, Surroundings(1.0, np.array(updates[-3:]), directions))
    assert found == pytest.approx([expected, expected], rel=1e-9)


def test_gradient_canaries_have_no_prediction():
    group = one_hot(2, 5, 0.5, 3)
    with pytest.raises(StudyError, match="no prediction"):
        trained(group, FilterSchedule(k=1, signature=Signature.LOSS))
