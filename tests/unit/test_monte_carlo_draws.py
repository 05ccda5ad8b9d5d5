import numpy as np
import pytest

from coalmine.auditor import cohorts, monte_carlo, variance_reduced
from coalmine.auditor.eps_bound import Split
from coalmine.protocol.errors import StudyError

S = np.random.default_rng(7).normal(size=200) * (np.random.default_rng(8).random(200) < 0.5)
SCORE = (S, 1.3, 0.9, 0.2)
TRIALS = 3 * cohorts.CHUNK + 17


@pytest.mark.parametrize("q", [0.002, 0.1, 0.25, 0.5, 0.73])
def test_the_law_of_the_gaps_is_geometric_to_rounding(q):
    gaps = cohorts._gaps(q)
    by_word = np.bincount(gaps.direct, minlength=256) / 65536
    by_rest = np.diff(gaps.rest, prepend=0.0) * (1 - len(gaps.direct) / 65536)
    expected = np.append(q * (1 - q) ** np.arange(255), (1 - q) ** 255)
    assert np.abs(by_word + by_rest - expected).max() < 1e-15


def test_counts_are_the_same_for_any_number_of_threads():
    one, two, five = (monte_carlo.count(*SCORE, [1.0, 3.0], TRIALS, 5, threads=n) for n in (1, 2, 5))
    assert one.tp.tolist() == two.tp.tolist() == five.tp.tolist()
    assert one.fp.tolist() == two.fp.tolist() == five.fp.tolist()


def test_counts_are_those_of_the_scores_at_any_thresholds():
    absent, present = monte_carlo.scores(*SCORE, TRIALS, 5)
    thresholds = [2.0, -np.inf, 0.3, float(absent[3]), np.inf, 0.3]
    counted = monte_carlo.count(*SCORE, thresholds, TRIALS, 5)
    assert counted.fp.tolist() == [int((absent > t).sum()) for t in thresholds]
    assert counted.tp.tolist() == [int((present > t).sum()) for t in thresholds]
    assert counted.trials == TRIALS
    assert monte_carlo.count(*SCORE, 2.0, TRIALS, 5).tp.tolist() == counted.tp.tolist()[:1]


def test_seed_and_name_choose_the_draws_and_users_that_do_not_matter_do_not():
    base = monte_carlo.scores(*SCORE, 100, 5)[0]
    assert (monte_carlo.scores(*SCORE, 100, 6)[0] != base).all()
    assert (monte_carlo.scores(*SCORE, 100, 5, name="other")[0] != base).all()
    padded = (np.concatenate([np.zeros(50), S, np.zeros(9)]), *SCORE[1:])
    assert (monte_carlo.scores(*padded, 100, 5)[0] == base).all()


def test_everyone_takes_part_when_q_is_one():
    sums = cohorts.background_sums(np.random.default_rng(0), S, 1.0, 4)
    assert sums.tolist() == [S[S != 0].sum()] * 4
    drawn = variance_reduced.draw(S, 1.0, 1.0, 1.0, 0.5, 1000, 0)
    bound = variance_reduced.eps_lower(drawn, 1e-5, 0.05)
    assert bound.fpr_upper == pytest.approx(drawn.absent[0], rel=1e-9), "nothing is random, nothing is lost"


def test_variance_reduced_draws_do_not_depend_on_threads():
    one, two = (variance_reduced.draw(*SCORE, 2.0, TRIALS, 5, threads=n) for n in (1, 2))
    assert (one.present == two.present).all()
    assert (one.absent == two.absent).all()


def test_infinite_thresholds_show_nothing():
    for threshold in (np.inf, -np.inf):
        drawn = variance_reduced.draw(*SCORE, threshold, 100, 5)
        assert variance_reduced.eps_lower(drawn, 1e-5, 0.05, Split.TWO).eps_lower == 0


@pytest.mark.parametrize(
    "change",
    [
        {"projections": np.array([1.0, np.nan])},
        {"projections": np.ones((2, 2))},
        {"s_canary": np.inf},
        {"tau": 0.0},
        {"tau": np.nan},
        {"q": 0.0},
        {"q": 1.5},
        {"trials": 0},
        {"threads": 0},
        {"threshold": np.nan},
    ],
)
def test_what_is_no_score_is_refused(change):
    case = {
        "projections": S,
        "s_canary": 1.0,
        "tau": 1.0,
        "q": 0.1,
        "threshold": 1.0,
        "trials": 10,
        "threads": 1,
        **change,
    }
    values = [case[key] for key in ("projections", "s_canary", "tau", "q", "threshold", "trials")]
    for draw in (monte_carlo.count, variance_reduced.draw):
        with pytest.raises(StudyError, match="needs"):
            draw(*values, 0, threads=case["threads"])
