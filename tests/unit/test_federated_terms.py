"""What both sides of a federated run read from its settings, and the server's checkpoint."""

import numpy as np
import pytest

from coalmine.protocol.dpsgd.optimiser import Adam, Sgd, State
from coalmine.protocol.dpsgd.terms import Mode, Scope, terms
from coalmine.protocol.errors import StorageError, StudyError
from coalmine.server.training.standing import Standing

SETTINGS = {
    "mode": "gradient",
    "clients": 4,
    "steps": 20,
    "seed": 1,
    "q": 0.1,
    "sigma": 1.0,
    "clip": 0.5,
    "delta": 1e-5,
    "declared_size": 200,
    "universe": 180,
    "optimiser": "sgd",
    "lr": 0.5,
    "momentum": 0.0,
    "scope": "client",
    "local_steps": 1,
}


def test_settings_become_terms():
    found = terms({**SETTINGS, "filter.on": True, "filter.k": 2, "filter.last_epoch": 1, "data.source": "digits"})
    assert (found.mode, found.scope, found.rounds) == (Mode.GRADIENT, Scope.CLIENT, 20)
    assert found.filterings == (0, 10)
    assert found.mechanism.batch_size == 20
    assert found.optimiser == Sgd(0.5)
    assert terms({**SETTINGS, "optimiser": "adam"}).optimiser == Adam(0.5)
    assert terms({**SETTINGS, "filter.on": True, "filter.last_epoch": -1}).filter.last_epoch is None


def test_a_client_of_its_own_has_its_share_of_the_declared_size():
    found = terms({**SETTINGS, "mode": "local", "local_steps": 5})
    assert found.mechanism.declared_size == 50
    assert found.rounds == 4


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sigma": 0.0}, "sigma"),
        ({"clip": -1.0}, "clip"),
        ({"mode": "central"}, "gradient"),
        ({"clients": 0}, "clients"),
        ({"steps": True}, "steps"),
        ({"q": "often"}, "training.q"),
        ({"local_steps": 5}, "local_steps"),
        ({"mode": "local", "local_steps": 3}, "divisor"),
        ({"mode": "local", "local_steps": 20, "filter.on": True}, "middle of a round"),
        ({"mode": "local", "scope": "federation", "filter.on": True}, "alone"),
        ({"filter.on": True, "filter.until_left": 3}, "must not depend"),
        ({"optimiser": "lion"}, "adam"),
    ],
)
def test_what_cannot_be_agreed_on_is_refused(change, said):
    with pytest.raises(StudyError, match=said):
        terms({**SETTINGS, **change})


def test_a_checkpoint_comes_back_as_it_was(tmp_path):
    rng = np.random.default_rng(0)
    one = Standing(0, rng.standard_normal(7)).filtered(np.array([3, 5]))
    for _ in range(3):
        one = one.after(rng.standard_normal(7), State((rng.standard_normal(7),), 4), rng.standard_normal(7), 2)
    one = one.filtered(np.zeros(0, np.int64))
    one.spent.update({0: 5, 3: 10})
    one.save(tmp_path / "run.npz")
    other = Standing.load(tmp_path / "run.npz")
    assert (other.step, other.optimiser.steps, other.spent) == (3, 4, {0: 5, 3: 10})
    assert np.array_equal(other.theta, one.theta)
    assert other.updates.shape == (2, 7)
    assert np.array_equal(other.updates, one.updates)
    assert [past.step for past in other.past] == [0, 3]
    assert other.past[0].gone.tolist() == [3, 5]
    assert np.array_equal(other.past[1].theta, one.theta)
    assert (tmp_path / "run.npz").stat().st_mode & 0o077 == 0
    (tmp_path / "run.npz").write_bytes(b"PK")
    with pytest.raises(StorageError, match="checkpoint"):
        Standing.load(tmp_path / "run.npz")
