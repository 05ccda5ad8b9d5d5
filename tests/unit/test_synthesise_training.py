"""Losses, gradients and sampling of the small language model."""

import numpy as np
import pytest
import torch
from fakes.small_models import PUBLIC, SHAPE, small_pieces
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from oracles.naive_dp_step import clipped_mean

from coalmine.server.synthesise.corpus import Record
from coalmine.server.synthesise.lessons import lessons, prompt
from coalmine.server.synthesise.recipe import Asking, Schedule, Shape
from coalmine.server.synthesise.tiny_model import TinyModel
from coalmine.server.synthesise.training import _batches, _private_step, fit, record_losses
from coalmine.server.synthesise.writing import choose, write

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing")

PIECES = small_pieces()
LESSONS = lessons((Record(0, text, "film") for text in PUBLIC), PIECES, SHAPE.context)


def model(seed=0):
    return TinyModel(PIECES.size, SHAPE, seed)


def test_the_default_has_at_most_two_million_parameters():
    full = TinyModel(Shape().vocabulary + 2, Shape(), 0)
    assert 500_000 < sum(parameter.numel() for parameter in full.parameters()) <= 2_000_000


def test_a_loss_depends_on_its_own_record_alone():
    made = model()
    together = record_losses(made, LESSONS[:7]).detach()
    for lesson, loss in zip(LESSONS[:7], together, strict=True):
        assert float(record_losses(made, [lesson]).detach()) == pytest.approx(float(loss), rel=1e-5)
    pieces, given = LESSONS[0]
    logits = made(torch.tensor([pieces[:-1]]))[0, given - 1 :].log_softmax(1)
    expected = -logits[range(len(pieces) - given), pieces[given:]].mean()
    assert float(together[0]) == pytest.approx(float(expected.detach()), rel=1e-5)


def test_no_place_sees_what_comes_later():
    made = model()
    pieces = torch.tensor([LESSONS[0].pieces[:12]])
    changed = pieces.clone()
    changed[0, 7:] = 5
    before, after = made(pieces)[0], made(changed)[0]
    assert torch.allclose(before[:7], after[:7], atol=1e-6)
    assert not torch.allclose(before[7:], after[7:], atol=1e-3)


def test_step_by_step_is_all_at_once():
    made = model()
    pieces = torch.tensor([lesson.pieces[:12] for lesson in LESSONS[:3]])
    whole = made(pieces)
    memory = made.remember()
    assert torch.allclose(made.step(pieces[:, :5], memory), whole[:, 4], atol=1e-5)
    for place in range(5, 12):
        assert torch.allclose(made.step(pieces[:, place : place + 1], memory), whole[:, place], atol=1e-5)


@pytest.mark.parametrize("clip", [0.05, 100.0])
@pytest.mark.parametrize("records", [1, 3])
def test_a_private_step_without_noise_is_the_naive_one(clip, records):
    """Users of several records, more of them than fit in one group; one clip per user, whatever it holds."""
    users = [LESSONS[start : start + records] for start in range(0, 42, records)]
    made, plain = model(), model()
    watched = GradSampleModule(made, loss_reduction="sum")
    optimizer = DPOptimizer(
        torch.optim.SGD(made.parameters(), lr=1.0), noise_multiplier=0.0, max_grad_norm=clip, expected_batch_size=10
    )
    _private_step(watched, optimizer, list(made.parameters()), users, records, 1.1, np.random.default_rng(0))
    expected, norms = clipped_mean(plain, users, clip, 10)
    assert (min(norms) > clip) == (clip < 1)
    for before, after, update in zip(plain.parameters(), made.parameters(), expected, strict=True):
        assert torch.allclose(before - after, update, atol=2e-5 * max(1.0, float(update.abs().max())))
    assert max(float(update.abs().max()) for update in expected) > 1e-3


def test_only_so_many_records_of_a_user_take_part(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "coalmine.server.synthesise.training.record_losses",
        lambda model, batch: seen.append(len(batch)) or record_losses(model, batch),
    )
    made = model()
    watched = GradSampleModule(made, loss_reduction="sum")
    optimizer = DPOptimizer(
        torch.optim.SGD(made.parameters(), lr=1.0), noise_multiplier=0.0, max_grad_norm=1.0, expected_batch_size=2
    )
    _private_step(watched, optimizer, list(made.parameters()), [LESSONS[:9], LESSONS[9:10]], 4, 1.1,
                  np.random.default_rng(0))  # fmt: skip
    assert seen == [5]


def test_a_loss_falls_and_training_repeats_itself():
    def trained():
        made = model()
        fit(made, LESSONS, Schedule(epochs=3, batch=16), np.random.default_rng(0), lambda done: None)
        return made

    first, second = trained(), trained()
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    before, after = (float(record_losses(made, LESSONS).mean().detach()) for made in (model(), first))
    assert after < before - 0.3


def test_pieces_are_drawn_by_their_probability():
    logits = torch.log(torch.tensor([[0.2, 0.5, 0.3]])).repeat(5, 1)
    draws = torch.tensor([0.0, 0.19, 0.2, 0.69, 0.999], dtype=torch.float64)
    assert choose(logits, draws, 1.0).tolist() == [0, 0, 1, 1, 2]
    assert choose(logits, draws.clamp(min=0.01), 0.05).tolist() == [1, 1, 1, 1, 1]


def test_texts_depend_on_the_arguments_alone_and_keep_their_order():
    made = model()
    labels = ["a", "b", "a", "", "b"]
    texts = write(made, PIECES, labels, Asking(longest=10), 4, lambda done: None)
    assert texts == write(made, PIECES, labels, Asking(longest=10), 4, lambda done: None)
    assert texts != write(made, PIECES, labels, Asking(longest=10), 5, lambda done: None)
    assert len(set(texts)) == 5
    assert write(made, PIECES, ["a"], Asking(longest=10), 4, lambda done: None) == [texts[0]]


def test_a_text_ends_where_the_context_ends(monkeypatch):
    lengths = []
    monkeypatch.setattr(type(PIECES), "decode", lambda self, pieces: lengths.append(len(pieces)) or "text")
    write(model(), PIECES, ["a"] * 20, Asking(longest=1000), 4, lambda done: None)
    assert max(lengths) == SHAPE.context - len(prompt("a", PIECES))


def test_batches_hold_every_lesson_once_and_change():
    rng = np.random.default_rng(0)
    first, second = (list(_batches(LESSONS, 7, rng)) for _ in range(2))
    for batches in (first, second):
        assert sorted(id(lesson) for batch in batches for lesson in batch) == sorted(map(id, LESSONS))
        assert sorted(map(len, batches))[1:] == [7] * (len(batches) - 1)
    assert first != second


def test_texts_hold_no_control_characters(monkeypatch):
    monkeypatch.setattr(type(PIECES), "decode", lambda self, pieces: " a\x00b\x1b[0m\tc\r\nd\x7f ")
    assert write(model(), PIECES, ["a"], Asking(longest=3), 4, lambda done: None) == ["ab[0m\tc\nd"]
