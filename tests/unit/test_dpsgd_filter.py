"""The neighbour property of the filter: adding one sample changes what is left by one sample at most, ties included."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coalmine.protocol.dpsgd.filter import Reach, drop
from coalmine.protocol.dpsgd.mechanism import DpSgd
from coalmine.protocol.dpsgd.schedule import FilterSchedule, check_drop
from coalmine.protocol.dpsgd.signatures import Signature, Surroundings, signature
from coalmine.protocol.errors import ContributionError, StudyError


@st.composite
def neighbours(draw):
    """Ids in random order, labels, several rounds of scores with many ties, one extra sample, k and a reach."""
    n = draw(st.integers(0, 14))
    ids = draw(st.permutations(range(n + 1)))
    labels = draw(st.lists(st.integers(0, 2), min_size=n + 1, max_size=n + 1))
    rounds = draw(st.integers(1, 4))
    score = st.lists(st.integers(0, 2).map(float), min_size=n + 1, max_size=n + 1)
    scores = draw(st.lists(score, min_size=rounds, max_size=rounds))
    return list(ids), labels, scores, draw(st.sampled_from(ids)), draw(st.integers(1, 4)), draw(st.sampled_from(Reach))


def left(rule, present, labels, scores, k, reach):
    """The samples that survive several filterings; scores and labels belong to ids."""
    present = list(present)
    for score in scores:
        gone = rule(present, [labels[i] for i in present], [score[i] for i in present], k, reach)
        present = [i for i in present if i not in set(np.asarray(gone).tolist())]
    return set(present)


def distance(rule, case):
    ids, labels, scores, extra, k, reach = case
    more = left(rule, ids, labels, scores, k, reach)
    fewer = left(rule, [i for i in ids if i != extra], labels, scores, k, reach)
    return len(more ^ fewer)


@settings(max_examples=600)
@given(neighbours())
def test_neighbours_stay_neighbours(case):
    assert distance(drop, case) <= 1


@settings(max_examples=200)
@given(neighbours(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(case, random):
    ids, labels, scores, _, k, reach = case
    shuffled = list(ids)
    random.shuffle(shuffled)
    assert left(drop, ids, labels, scores, k, reach) == left(drop, shuffled, labels, scores, k, reach)


@settings(max_examples=200)
@given(neighbours())
def test_exactly_the_top_k_of_each_group_go_and_never_more_than_there_are(case):
    ids, labels, scores, _, k, reach = case
    of = [labels[i] for i in ids]
    gone = set(drop(ids, of, [scores[0][i] for i in ids], k, reach).tolist())
    for group in set(of) if reach is Reach.PER_CLASS else [None]:
        members = [i for i in ids if group is None or labels[i] == group]
        ranked = sorted(members, key=lambda i: (-scores[0][i], i))
        assert gone & set(members) == set(ranked[: min(k, len(members))])


def sparing_small_classes(ids, classes, scores, k, reach):
    ids, classes, scores = np.array(ids, int), np.array(classes, int), np.array(scores)
    big = [label for label in np.unique(classes) if (classes == label).sum() >= 4]
    inside = np.isin(classes, big)
    return drop(ids[inside], classes[inside], scores[inside], k, reach)


def half_of_what_is_left(ids, classes, scores, k, reach):
    return drop(ids, classes, scores, max(1, len(ids) // 2), Reach.GLOBAL)


def ties_by_position_from_the_end_where_odd(ids, classes, scores, k, reach):
    """What an unstable selection may do: the order among ties follows the number of rows."""
    order = np.argsort(-np.array(scores), kind="stable")
    if len(ids) % 2:
        order = np.argsort(-np.array(scores)[::-1], kind="stable")[::1]
        order = len(ids) - 1 - order
    return [ids[i] for i in order[:k]]


@pytest.mark.parametrize("rule", [sparing_small_classes, half_of_what_is_left, ties_by_position_from_the_end_where_odd])
def test_rules_that_depend_on_counts_or_positions_are_told_apart(rule):
    rng = np.random.default_rng(0)
    worst = 0
    for _ in range(300):
        n = 14
        scores = [rng.integers(0, 3, n).astype(float).tolist() for _ in range(2)]
        reach = Reach.GLOBAL if rule is ties_by_position_from_the_end_where_odd else Reach.PER_CLASS
        case = (list(range(n)), rng.integers(0, 3, n).tolist(), scores, int(rng.integers(n)), 3, reach)
        assert distance(drop, case) <= 1
        worst = max(worst, distance(rule, case))
    assert worst > 1


@given(st.data())
def test_every_signature_gives_neighbours_on_data_with_duplicates(data):
    """End to end: signatures of real gradients, with repeated samples, which tie."""
    kind = data.draw(st.sampled_from(Signature))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    distinct = rng.standard_normal((4, 6)), rng.standard_normal((4, 3))
    copies = rng.integers(0, 4, 11)
    labels = copies % 3
    around = Surroundings(1.0, rng.standard_normal((2, 6)), rng.standard_normal((3, 6)))
    scores = [signature(kind, distinct[0][c], distinct[1][c], int(c % 3), around) for c in copies]
    extra, k = int(rng.integers(11)), int(rng.integers(1, 4))
    assert (
        distance(drop, (list(range(11)), labels.tolist(), [scores], extra, k, data.draw(st.sampled_from(Reach)))) <= 1
    )


def test_what_cannot_be_ranked_is_refused():
    with pytest.raises(ContributionError, match="not a number"):
        drop([0, 1], [0, 0], [1.0, np.nan], 1, Reach.GLOBAL)
    with pytest.raises(ContributionError, match="twice"):
        drop([1, 1], [0, 0], [1.0, 2.0], 1, Reach.GLOBAL)
    assert drop([], [], [], 3, Reach.PER_CLASS).tolist() == []


def test_the_schedule_is_public():
    schedule = FilterSchedule(k=5, every=2, first_epoch=1, last_epoch=6)
    assert schedule.epochs(100, 0.1) == (1, 3, 5)
    assert schedule.steps(100, 0.1) == (10, 30, 50)
    assert schedule.epochs(35, 0.1) == (1, 3)
    assert FilterSchedule().steps(30, 0.1) == (0, 10, 20)
    assert FilterSchedule().steps(7, 0.3) == (0, 3)
    assert schedule.largest_drop(100, 0.1, classes=10) == 150
    assert schedule.largest_drop(100, 0.1, classes=10, clients=4) == 600
    assert FilterSchedule(k=5, reach=Reach.GLOBAL).largest_drop(100, 0.1, classes=10) == 50


def test_a_schedule_that_drops_much_is_warned_of_and_refused():
    assert check_drop(500, 2000) is None
    assert "501 of 2000" in check_drop(501, 2000)
    assert "1000 of 2000" in check_drop(1000, 2000)
    with pytest.raises(StudyError, match="force"):
        check_drop(1001, 2000)
    assert "1001 of 2000" in check_drop(1001, 2000, force=True)


def test_schedules_from_settings():
    made = FilterSchedule.from_settings({"k": 3, "reach": "global", "signature": "loss", "last_epoch": None})
    assert made == FilterSchedule(k=3, reach=Reach.GLOBAL, signature=Signature.LOSS)
    for counting in ("drop_budget", "until_left", "min_class_size", "max_dropped"):
        with pytest.raises(StudyError, match="must not depend on how many"):
            FilterSchedule.from_settings({counting: 3})
    for wrong in ({"evry": 2}, {"signature": "grad_l3"}, {"reach": "clas"}, {"k": 2.5}, {"k": True}, {"every": None}):
        with pytest.raises(StudyError):
            FilterSchedule.from_settings(wrong)
    for wrong in ({"k": 0}, {"every": 0}, {"first_epoch": -1}, {"first_epoch": 3, "last_epoch": 2}):
        with pytest.raises(StudyError, match="filter"):
            FilterSchedule(**wrong)


def test_mechanisms_out_of_range_are_refused():
    right = {"q": 0.1, "sigma": 1.0, "clip": 1.0, "delta": 1e-5, "declared_size": 100}
    assert DpSgd(**right).batch_size == 10
    for key, value in (("q", 0), ("q", 1.1), ("sigma", 0), ("sigma", np.inf), ("clip", -1), ("delta", 1)):
        with pytest.raises(StudyError, match=key):
            DpSgd(**{**right, key: value})
    with pytest.raises(StudyError, match="declared_size"):
        DpSgd(**{**right, "declared_size": 0})
