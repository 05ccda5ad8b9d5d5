"""Finished groups of shadow models: found again when nothing changed, and only then."""

import re
from dataclasses import replace

import numpy as np
import pytest

from coalmine.clients.training.fast.shadows import Asked, Common, Shadows, train_shadows
from coalmine.clients.training.gradient_canaries import GradientCanaries
from coalmine.clients.training.models import Kind, ModelSpec
from coalmine.clients.training.plan import Plan
from coalmine.clients.training.table import table
from coalmine.deploy.training.shelf import Shelf, digest
from coalmine.protocol.dpsgd.mechanism import DpSgd
from coalmine.protocol.dpsgd.optimiser import Sgd
from coalmine.protocol.dpsgd.schedule import FilterSchedule
from coalmine.protocol.errors import StorageError

N, M = 30, 2
RNG = np.random.default_rng(0)
DATA = table(RNG.standard_normal((N + M, 3)), RNG.integers(0, 2, N + M), 2, where="test")
TEST = table(RNG.standard_normal((7, 3)), RNG.integers(0, 2, 7), 2, where="test")
SPEC = ModelSpec(Kind.LOGISTIC, (3,), 2)
PLAN = Plan(DpSgd(0.5, 1.0, 1.0, 1e-5, N), 6, Sgd(0.3), FilterSchedule(k=1))
ASKED = Asked(RNG.standard_normal((4, 3)).astype(np.float32), losses=True, each=True)
COMMON = Common(SPEC, DATA, M, TEST, None, None, None, ASKED)
INCLUDED, SEEDS = np.array([[True, False], [False, True], [False, False]]), np.array([5, 6, 7])


def same(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in Shadows.__dataclass_fields__)


def test_what_is_kept_is_found_again(tmp_path):
    shelf, trained = Shelf(tmp_path / "shadows", "1"), train_shadows(COMMON, PLAN, INCLUDED, SEEDS, 2)
    name = shelf.name(digest(COMMON), PLAN, INCLUDED, SEEDS, 2)
    assert shelf.find(name) is None
    shelf.keep(name, trained)
    assert same(Shelf(tmp_path / "shadows", "1").find(name), trained)
    (path,) = (tmp_path / "shadows").iterdir()
    assert path.stat().st_mode & 0o077 == 0
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(StorageError, match=re.escape("remove this file")):
        shelf.find(name)
    shelf.clear()
    assert shelf.find(name) is None


def test_every_determinant_has_a_part_in_the_name(tmp_path):
    shelf = Shelf(tmp_path, "1")

    def name(common=COMMON, plan=PLAN, included=INCLUDED, seeds=SEEDS, at_once=2, shelf=shelf):
        return shelf.name(digest(common), plan, included, seeds, at_once)

    moved = replace(DATA, x=DATA.x + np.float32(1e-6))
    gradient = GradientCanaries(np.array([0, 1]), np.array([1.0, 2.0]), np.array([0, 0]))
    names = [
        name(),
        name(shelf=Shelf(tmp_path, "2")),
        name(common=replace(COMMON, data=moved)),
        name(common=replace(COMMON, canaries=1)),
        name(common=replace(COMMON, test=TEST.take(range(6)))),
        name(common=replace(COMMON, spec=replace(SPEC, kind=Kind.MLP))),
        name(common=replace(COMMON, start=np.zeros(8))),
        name(common=replace(COMMON, start=np.full(8, 1e-9))),
        name(common=replace(COMMON, groups=np.arange(N + M))),
        name(common=replace(COMMON, gradient=gradient)),
        name(common=replace(COMMON, gradient=replace(gradient, size=np.array([1.0, 2.1])))),
        name(common=replace(COMMON, asked=replace(ASKED, losses=False))),
        name(common=replace(COMMON, asked=replace(ASKED, questions=None))),
        name(plan=replace(PLAN, steps=7)),
        name(plan=replace(PLAN, filter=None)),
        name(plan=replace(PLAN, privacy=replace(PLAN.privacy, sigma=1.0001))),
        name(included=~INCLUDED),
        name(seeds=SEEDS + 1),
        name(at_once=3),
    ]
    assert len(set(names)) == len(names)
    assert name() == names[0]


def test_what_else_is_asked_is_what_the_models_say():
    found = train_shadows(COMMON, PLAN, INCLUDED, SEEDS, 2)
    assert found.answers.shape == (3, 4)
    assert found.losses.shape == found.gone.shape == (3, N)
    assert found.right.shape == (3, 7)
    assert np.array_equal(found.right.mean(axis=1), found.accuracy)
    assert np.array_equal(found.gone.mean(axis=1), found.lost)
    assert found.lost.max() > 0
    assert (found.losses > 0).all()
    assert found.updates.shape == (3, 0)
    silent = train_shadows(replace(COMMON, asked=Asked()), PLAN, INCLUDED, SEEDS, 2)
    assert np.array_equal(silent.logits, found.logits)
    assert silent.answers.size == silent.losses.size == silent.gone.size == silent.right.size == 0
    canary = GradientCanaries(np.array([1, 1]), np.array([1.0, 1.0]), np.array([0, 0]))
    seen = train_shadows(Common(SPEC, DATA, M, TEST, None, None, canary, Asked(updates=True)), PLAN, INCLUDED, SEEDS, 2)
    moved = -(0.3 / PLAN.privacy.batch_size) * seen.updates.sum(axis=1)
    assert np.allclose(moved, seen.touched)
