import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax
from scipy.stats import norm

from coalmine.auditor import gdp
from coalmine.auditor.eps_bound import Split, eps_lower
from coalmine.auditor.membership import conventions, scores
from coalmine.auditor.membership.ceiling import ceiling
from coalmine.auditor.membership.conventions import all_conventions, best_threshold
from coalmine.auditor.membership.disparate import impact
from coalmine.auditor.membership.low_rates import tpr_at
from coalmine.auditor.membership.onion import onion
from coalmine.auditor.membership.single_run import gaussian, gaussian_eps, guess
from coalmine.auditor.membership.suite import audit, repeated
from coalmine.auditor.membership.thresholds import counts_at, halves, sweep
from coalmine.protocol.dpsgd.claims import claim
from coalmine.protocol.dpsgd.mechanism import DpSgd
from coalmine.protocol.errors import StudyError
from coalmine.protocol.finding import Verdict
from coalmine.protocol.privacy import Assurance

DELTA, ALPHA = 1e-5, 0.05


def rng(seed=0):
    return np.random.default_rng(seed)


def test_scores_are_their_formulas():
    z, y = 3 * rng().standard_normal((4, 7, 5)), rng().integers(0, 5, 7)
    p = np.take_along_axis(softmax(z, axis=-1), np.broadcast_to(y, (4, 7))[..., None], axis=-1)[..., 0]
    assert np.allclose(scores.logit_scaled_confidence(z, y), np.log(p / (1 - p)))
    assert np.allclose(scores.minus_loss(z, y), np.log(p))
    assert scores.logit_scaled_confidence([800.0, 0.0], 0) == 800
    assert np.allclose(scores.loss_drop(z[0], z[1], y), np.log(p[1] / p[0]))
    assert scores.label_only([[1, 1, 0, 2], [1, 1, 1, 1]], 1).tolist() == [0.5, 1.0]
    assert scores.group([[-1.0, -3.0], [-2.0, -0.5]]).tolist() == [-3.0, -2.0]
    one, zero = rng(1).normal(2, 1, 50), rng(2).normal(0, 3, 50)
    ratio = scores.likelihood_ratio([0.5], one, zero)
    expected = norm.logpdf(0.5, one.mean(), one.std(ddof=1)) - norm.logpdf(0.5, zero.mean(), zero.std(ddof=1))
    assert ratio[0] == pytest.approx(expected)
    with pytest.raises(StudyError, match="lira"):
        scores.likelihood_ratio([0.0], [1.0], [1.0, 2.0])


def test_calibration_leaves_the_model_itself_out():
    s, held = np.array([[1.0], [5.0], [3.0], [2.0]]), np.array([[True], [False], [False], [False]])
    assert scores.calibrated(s, held)[:, 0].tolist() == [1 - 10 / 3, 5 - 2.5, 3 - 3.5, 2 - 4.0]
    with pytest.raises(StudyError, match="two models without"):
        scores.calibrated(s, ~held)


def test_labels_reach_log_softmax():
    z = rng().standard_normal((3, 4))
    assert np.allclose(scores.minus_loss(z, [1, 0, 3]), log_softmax(z, axis=1)[[0, 1, 2], [1, 0, 3]])


@given(st.lists(st.integers(0, 6), min_size=1, max_size=30), st.lists(st.integers(0, 6), min_size=1, max_size=30))
def test_a_sweep_counts_every_threshold(present, absent):
    tests = sweep(present, absent)
    assert tests.thresholds.tolist() == sorted(set(present) | set(absent))
    for threshold, tp, fp in zip(tests.thresholds, tests.tp, tests.fp, strict=True):
        assert (tp, fp) == (sum(s >= threshold for s in present), sum(s >= threshold for s in absent))
        assert counts_at(present, absent, threshold) == (tp, fp)


def test_halves_share_nothing():
    one, other = halves(41, rng())
    assert sorted([*one, *other]) == list(range(41))
    assert (len(one), len(other)) == (20, 21)


def test_ceilings_of_the_method():
    assert ceiling(200, 200, DELTA, 0.05) == pytest.approx(4.2, abs=0.05)
    assert ceiling(100, 100, DELTA, 0.05) == pytest.approx(3.5, abs=0.05)
    assert ceiling(10_000, 10_000, DELTA, 0.05) == pytest.approx(8.1, abs=0.05)
    assert ceiling(200, 200, DELTA, 0.05) == pytest.approx(eps_lower(200, 0, 200, 200, DELTA, 0.1, Split.TWO).eps_lower)


def test_perfect_separation_reaches_each_ceiling_and_no_more():
    found = {one.method: one for one in all_conventions(np.arange(200) + 1000.0, np.arange(200.0), DELTA, ALPHA, rng())}
    assert len(found) == 6
    assert [name for name, one in found.items() if one.assurance is Assurance.FORMAL] == [
        "clopper_pearson_holdout",
        "clopper_pearson_bonferroni",
    ]
    for one in found.values():
        if "ceiling" in one.details:
            assert one.eps_lower == pytest.approx(one.details["ceiling"])
        assert one.confidence == (0.95 if one.assurance is Assurance.FORMAL else None)
    assert found["gdp"].eps_lower > 20


def test_conventions_by_hand():
    present, absent = np.repeat([1.0, 0.0], [80, 20]), np.repeat([1.0, 0.0], [10, 90])
    bound = eps_lower(80, 10, 100, 100, DELTA, ALPHA, Split.TWO)
    assert conventions.clopper_pearson_holdout(
        (present, absent), (present, absent), DELTA, ALPHA
    ).eps_lower == pytest.approx(bound.eps_lower)
    corrected = eps_lower(80, 10, 100, 100, DELTA, ALPHA / 200, Split.TWO)
    assert conventions.clopper_pearson_bonferroni(present, absent, DELTA, ALPHA).eps_lower == pytest.approx(
        corrected.eps_lower
    )
    raw = conventions.multiple_hypothesis(present, absent, DELTA).eps_lower
    assert raw == pytest.approx(math.log((0.8 - DELTA) / 0.1))
    mu = norm.ppf(1 - bound.fpr_upper) - norm.ppf(bound.fnr_upper)
    assert conventions.gdp_all(present, absent, DELTA, ALPHA).eps_lower == pytest.approx(gdp.eps(mu, DELTA))


def test_an_error_rate_that_was_never_seen_gives_no_infinite_epsilon():
    assert conventions.multiple_hypothesis([3.0, 2.0], [1.0, 0.0], DELTA).eps_lower == pytest.approx(
        math.log(2), abs=1e-4
    )
    assert conventions.multiple_hypothesis([1.0, 1.0], [1.0, 1.0], DELTA).eps_lower == 0


def test_all_equal_scores_show_nothing():
    for one in all_conventions(np.ones(60), np.ones(60), DELTA, ALPHA, rng()):
        assert one.eps_lower == 0


def test_among_equal_bounds_the_threshold_that_separates_best_is_chosen():
    tests = sweep([5.0, 6.0, 7.0, 1.0], [0.0, 1.0, 2.0, 6.5])
    assert best_threshold(tests, DELTA, ALPHA) == 5.0


def test_too_few_models_are_refused_for_formal_statements():
    for n1, n0 in ((19, 100), (100, 19)):
        with pytest.raises(StudyError, match="too few"):
            all_conventions(rng().random(n1), rng().random(n0), DELTA, ALPHA, rng())
    with pytest.raises(StudyError, match="not a number"):
        all_conventions([np.nan] * 30, rng().random(30), DELTA, ALPHA, rng())
    with pytest.raises(StudyError, match="no model"):
        sweep([], [1.0])


def test_findings_and_repetitions():
    promised = claim(DpSgd(q=0.5, sigma=2.0, clip=1.0, delta=DELTA, declared_size=10), 1)
    loud = [
        audit("blank", promised, rng(s).normal(9, 1, 300), rng(s + 9).normal(0, 1, 300), ALPHA, rng(s))
        for s in range(3)
    ]
    quiet = audit("blank", promised, rng(1).normal(0, 1, 300), rng(2).normal(0, 1, 300), ALPHA, rng())
    assert promised.eps_pld_upper < 3
    assert {one.verdict for one in loud} == {Verdict.CONTRADICTED}
    assert quiet.verdict is Verdict.CONSISTENT
    rows = repeated(loud)
    assert [row.method for row in rows] == [one.method for one in quiet.evidence]
    assert rows[0].mean == pytest.approx(np.mean(rows[0].values))
    assert rows[0].std == pytest.approx(np.std(rows[0].values, ddof=1))
    of_group = audit("blank", promised, rng(1).normal(9, 1, 60), rng(2).normal(0, 1, 60), ALPHA, rng(), group_size=5)
    assert of_group.verdict is Verdict.CONSISTENT
    assert all("group of 5" in one.method for one in of_group.evidence)
    with pytest.raises(StudyError, match="repetitions"):
        repeated([loud[0], of_group])


def test_heuristics_alone_never_contradict():
    promised = claim(DpSgd(q=0.01, sigma=8.0, clip=1.0, delta=DELTA, declared_size=10), 1)
    silent = audit("blank", promised, rng(1).random(100), rng(2).random(100), ALPHA, rng())
    assert max(one.eps_lower for one in silent.evidence) > promised.eps_pld_upper
    assert silent.verdict is Verdict.CONSISTENT


def test_guesses_are_made_on_the_clearest_canaries():
    score = [0.9, 0.1, 0.5, 0.8, 0.2, 0.5]
    included = [1, 0, 1, 0, 1, 0]
    seen = guess(score, included, 2, 2)
    assert (seen.canaries, seen.guesses, seen.correct) == (6, 4, 2)
    assert guess(score, included, 0, 1).correct == 1
    for k_in, k_out in ((0, 0), (4, 3), (-1, 2)):
        with pytest.raises(StudyError, match="guesses"):
            guess(score, included, k_in, k_out)


@pytest.mark.parametrize(("mu", "delta"), [(1.0, 1e-5), (3.0, 1e-3), (0.5, 0.01)])
def test_two_gaussians_of_one_width_are_gdp(mu, delta):
    assert gaussian_eps(5.0 + 2 * mu, 2.0, 5.0, 2.0, delta) == pytest.approx(gdp.eps(mu, delta), abs=1e-6)


@pytest.mark.parametrize(("m1", "s1", "m0", "s0"), [(0.0, 2.0, 0.0, 1.0), (1.0, 0.7, 0.0, 1.0), (3.0, 1.1, -1.0, 2.5)])
def test_two_gaussians_of_different_widths_by_quadrature(m1, s1, m0, s0):
    eps, x = gaussian_eps(m1, s1, m0, s0, 1e-3), np.linspace(-40, 40, 2_000_001)
    p, q = norm.pdf(x, m1, s1), norm.pdf(x, m0, s0)
    sticks = [np.maximum(one - np.exp(eps) * other, 0).sum() * (x[1] - x[0]) for one, other in ((p, q), (q, p))]
    assert max(sticks) == pytest.approx(1e-3, rel=1e-3)


def test_the_gaussian_reading_needs_spread():
    assert gaussian(rng().standard_normal(400), np.arange(400) % 2 == 0, 1e-5).assurance is Assurance.HEURISTIC
    with pytest.raises(StudyError, match="spread"):
        gaussian([1.0, 1.0, 0.0, 2.0], [True, True, False, False], 1e-5)


def test_the_onion_finds_the_sample_that_tells_and_nothing_where_none_does():
    present, absent = rng(1).standard_normal((100, 12)), rng(2).standard_normal((100, 12))
    silent = onion(present, absent, DELTA, ALPHA, rng())
    present[:, 7] -= 6
    loud = onion(present, absent, DELTA, ALPHA, rng())
    assert int(loud.by_sample.argmax()) == 7
    assert loud.holdout.eps_lower > 1.5
    assert silent.holdout.eps_lower < 0.5
    assert silent.strongest.assurance is Assurance.HEURISTIC
    assert np.array_equal(np.delete(loud.by_sample, 7), np.delete(silent.by_sample, 7))
    with pytest.raises(StudyError, match="do not fit"):
        onion(present, absent[:, :3], DELTA, ALPHA, rng())


def test_true_positive_rate_at_a_low_false_positive_rate():
    found = tpr_at([5, 5, 4, 3, 1], [4, 3, 2, 1, 0, 0, 0, 0, 0, 0], 0.1)
    assert (found.tpr, found.observed_fpr, found.resolution) == (0.6, 0.1, 0.1)
    assert found.low < 0.6 < found.high
    assert tpr_at([1, 1], [1, 1], 0.1).tpr == 0
    assert tpr_at([5, 1], [4, 3, 2], 0.0).tpr == 0.5


def test_disparate_impact_by_group_and_class():
    dropped = np.array([[1, 0, 0, 1, 0, 1], [1, 0, 0, 1, 0, 1]])
    group, labels = np.array([1, 0, 0, 1, 0, -1]), np.array([0, 0, 1, 1, 1, 0])
    right, unfiltered = np.array([[1, 0], [1, 1]]), np.array([[1, 1], [1, 1]])
    found = impact(dropped, labels, group, right, unfiltered, np.array([0, 1]))
    assert [(share.of, share.mean, share.samples) for share in found.dropped] == [("group 0", 0, 3), ("group 1", 1, 2)]
    assert [share.mean for share in found.accuracy] == [1.0, 0.5]
    assert [share.mean for share in found.accuracy_unfiltered] == [1.0, 1.0]
    assert found.accuracy[1].low == 0
    assert found.accuracy[1].high == 1
    assert [share.mean for share in found.by_class] == [pytest.approx(2 / 3), pytest.approx(1 / 3)]
