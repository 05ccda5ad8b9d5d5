import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from coalmine.protocol.accounting import prv_epsilon
from coalmine.protocol.dpsgd.claims import claim, noise_multiplier
from coalmine.protocol.dpsgd.mechanism import DpSgd, Sampling
from coalmine.protocol.dpsgd.optimiser import Adam, Sgd, State
from coalmine.protocol.dpsgd.sampling import poisson_batch, shuffled_batches
from coalmine.protocol.dpsgd.signatures import Signature, Surroundings, public_directions, signature
from coalmine.protocol.dpsgd.step import clip, clipped_sum, noised_gradient, private_gradient
from coalmine.protocol.errors import ContributionError, StudyError
from coalmine.protocol.privacy import Assurance, PrivacyUnit, ThreatModel

MECHANISM = DpSgd(q=0.1, sigma=1.5, clip=2.0, delta=1e-5, declared_size=100)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 100))
def test_one_sample_moves_the_sum_by_at_most_the_clip(seed, scale):
    rng = np.random.default_rng(seed)
    gradients = scale * rng.standard_normal((5, 7))
    moved = clipped_sum(gradients, 2.0) - clipped_sum(gradients[:-1], 2.0)
    assert np.linalg.norm(moved) <= 2.0 * (1 + 1e-12)
    assert np.allclose(moved, clip(gradients[-1], 2.0))


def test_short_gradients_and_zero_gradients_stay_as_they_are():
    assert clip(np.array([0.6, 0.8]), 1.5).tolist() == [0.6, 0.8]
    assert clip(np.zeros(2), 1.0).tolist() == [0.0, 0.0]
    assert np.allclose(clip(np.array([30.0, 40.0]), 5.0), [3.0, 4.0])


def test_the_denominator_is_public_and_an_empty_batch_is_noise_alone():
    noise = np.random.default_rng(1).standard_normal(4)
    empty = private_gradient(np.zeros((0, 4)), MECHANISM, np.random.default_rng(1))
    assert np.allclose(empty, 3.0 * noise / 10.0)
    full = private_gradient(np.full((3, 4), 0.1), MECHANISM, np.random.default_rng(1))
    assert np.allclose(full - empty, 0.3 / 10.0)


def test_a_sum_that_is_no_number_stops_the_step():
    with pytest.raises(ContributionError, match="not a number"):
        noised_gradient(np.array([1.0, np.nan]), MECHANISM, np.random.default_rng(0))


def test_signatures_by_hand():
    g, z = np.array([3.0, 0.0, 0.0, -4.0]), np.array([1.0, 3.0, 2.0])
    p = np.exp(z) / np.exp(z).sum()
    around = Surroundings(1.0, np.array([[0.0, 0, 0, 5.0], [2.0, 0, 0, 0]]), np.eye(4)[:2])
    centred = g - g.mean()
    by_hand = {
        Signature.GRAD_L2: 5.0,
        Signature.GRAD_LINF: 4.0,
        Signature.CLIPPED_L2: 1.0,
        Signature.CLIPPED_LINF: 0.8,
        Signature.GRAD_COSINE: 1 - 0.6,
        Signature.GRAD_KURTOSIS: (centred**4).mean() / (centred**2).mean() ** 2 - 3,
        Signature.DIRECTION_UNIQUENESS: 1 - 0.8,
        Signature.PREDICTION_ENTROPY: -(p * np.log(p)).sum(),
        Signature.PREDICTION_MARGIN: 3.0 - 1.0,
        Signature.PROJECTION_VARIABILITY: 1.5**2,
        Signature.LOSS: -math.log(p[0]),
    }
    assert set(by_hand) == set(Signature)
    assert len(Signature) == 11
    for kind, value in by_hand.items():
        assert signature(kind, g, z, 0, around) == pytest.approx(value), kind


def test_signatures_without_a_direction():
    nothing = Surroundings(1.0)
    for kind in (Signature.GRAD_COSINE, Signature.DIRECTION_UNIQUENESS):
        assert signature(kind, np.ones(3), np.zeros(2), 0, nothing) == 1.0
    around = Surroundings(1.0, np.ones((1, 3)), public_directions(np.random.default_rng(0), 4, 3))
    for kind in Signature:
        assert np.isfinite(signature(kind, np.zeros(3), np.zeros(2), 1, around)), kind
    assert np.allclose(np.linalg.norm(around.directions, axis=1), 1)


def test_coins_belong_to_ids_and_shuffled_batches_cover_an_epoch():
    drawn = poisson_batch(np.random.default_rng(3), 50, 0.3)
    assert drawn.shape == (50,)
    assert (drawn <= poisson_batch(np.random.default_rng(3), 50, 0.6)).all()
    active = np.arange(50) % 5 > 0
    parts = shuffled_batches(np.random.default_rng(0), active, 7)
    assert sorted(np.concatenate(parts).tolist()) == np.flatnonzero(active).tolist()
    assert {len(part) for part in parts} <= {5, 6}
    fewer = active.copy()
    fewer[8] = False
    kept = np.concatenate(shuffled_batches(np.random.default_rng(0), fewer, 7))
    assert kept.tolist() == [i for i in np.concatenate(parts).tolist() if i != 8]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Sgd(0.3), lambda p: torch.optim.SGD(p, lr=0.3)),
        (Sgd(0.3, 0.9), lambda p: torch.optim.SGD(p, lr=0.3, momentum=0.9)),
        (Adam(0.05), lambda p: torch.optim.Adam(p, lr=0.05)),
    ],
    ids=["sgd", "momentum", "adam"],
)
def test_optimisers_agree_with_torch_on_both_kinds_of_arrays(ours, theirs):
    rng = np.random.default_rng(0)
    start = rng.standard_normal(5)
    other = torch.nn.Parameter(torch.tensor(start))
    reference = theirs([other])
    plain, plain_state = start, State()
    batched, batched_state = torch.tensor(np.stack([start, start])), State()
    for _ in range(6):
        gradient = rng.standard_normal(5)
        other.grad = torch.tensor(gradient)
        reference.step()
        plain, plain_state = ours.step(plain, gradient, plain_state)
        batched, batched_state = ours.step(batched, torch.tensor(np.stack([gradient, gradient])), batched_state)
    assert np.allclose(plain, other.detach().numpy(), rtol=1e-12, atol=1e-12)
    assert np.allclose(batched.numpy(), np.stack([plain, plain]), rtol=1e-12, atol=1e-12)
    assert plain_state.steps == 6


def test_optimisers_out_of_range_are_refused():
    for make in (lambda: Sgd(0.0), lambda: Sgd(0.1, 1.0), lambda: Adam(-1.0), lambda: Adam(0.1, beta2=1.0)):
        with pytest.raises(StudyError, match="training"):
            make()
    with pytest.raises(StudyError, match="epsilon"):
        Adam(0.1, epsilon=0.0)


def test_the_claim_is_of_the_steps_taken():
    ten = claim(MECHANISM, 10)
    assert ten.rounds == 10
    assert (ten.unit, ten.threat_model, ten.assurance) == (
        PrivacyUnit.RECORD,
        ThreatModel.EVERY_UPDATE,
        Assurance.FORMAL,
    )
    assert ten.eps_prv == prv_epsilon(0.1, 1.5, 10, 1e-5)
    assert 0 < ten.eps_pld_lower <= ten.eps_pld_upper <= ten.eps_prv
    assert claim(MECHANISM, 20).eps_pld_upper > ten.eps_pld_upper
    assert claim(MECHANISM, 0).eps_pld_upper == 0
    shuffled = DpSgd(q=0.1, sigma=1.5, clip=2.0, delta=1e-5, declared_size=100, sampling=Sampling.SHUFFLED)
    assert claim(shuffled, 10).assurance is Assurance.HEURISTIC
    with pytest.raises(StudyError, match="steps"):
        claim(MECHANISM, -1)


@pytest.mark.parametrize(("eps", "about"), [(10.0, 1.13), (4.0, 2.07), (2.0, 3.62)])
def test_noise_for_an_epsilon(eps, about):
    sigma = noise_multiplier(eps, 0.1, 300, 1e-5)
    assert round(sigma, 2) == about
    assert prv_epsilon(0.1, sigma, 300, 1e-5) <= eps < prv_epsilon(0.1, sigma - 2e-4, 300, 1e-5)


def test_unreachable_epsilons_are_refused():
    with pytest.raises(StudyError, match="eps"):
        noise_multiplier(0.0, 0.1, 300, 1e-5)


def test_one_step_claims_hold_the_golden_values(shared):
    golden = json.loads((shared / "golden" / "scalars.json").read_text())
    for case in golden["ideal"]:
        knobs = DpSgd(q=case["q"], sigma=1 / case["mu"], clip=3.0, delta=case["delta"], declared_size=10)
        one = claim(knobs, 1)
        assert one.eps_pld_lower - 1e-6 <= case["eps"] <= one.eps_pld_upper + 1e-6
        assert one.eps_pld_upper - one.eps_pld_lower < 1e-3
    for case in golden["accounting"][::3]:
        knobs = DpSgd(q=case["q"], sigma=case["sigma"], clip=0.5, delta=case["delta"], declared_size=10)
        assert round(claim(knobs, case["steps"]).eps_prv, 3) == case["eps_theory"]
