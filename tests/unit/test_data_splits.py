"""Caps and splits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coalmine.clients.data.select import cap, distinct, distinct_records
from coalmine.clients.data.splits import SplitSizes, split_users
from coalmine.clients.data.users import User, UserTable
from coalmine.protocol.errors import DataError


def user(id, *records):
    return User(id, records, tuple(f"label of {text}" for text in records))


def numbered(id, count):
    return user(id, *(f"{id} says {i}" for i in range(count)))


def table(*users):
    return UserTable(users, "a test")


USERS = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=4),
    st.lists(st.integers(0, 9).map(str), max_size=12),
    min_size=1,
    max_size=20,
).map(lambda content: tuple(user(id, *records) for id, records in content.items()))


@given(USERS, st.data())
def test_splits_are_disjoint_of_the_right_size_and_keep_the_bounds(users, data):
    least, canary_records, m = (data.draw(st.integers(1, high)) for high in (4, 4, 8))
    canary_records = min(canary_records, m)
    seed = data.draw(st.integers(0, 99))
    able = sum(len(set(one.records)) >= canary_records for one in users)
    canaries = data.draw(st.integers(0, able))
    # However the canaries fall, this many others are left.
    left = max(0, sum(len(set(one.records)) >= least for one in users) - canaries)
    aux = data.draw(st.integers(0, left))
    calibration = data.draw(st.integers(0, left - aux))
    sizes = SplitSizes(aux, calibration, left - aux - calibration, canaries)

    splits = split_users(table(*users), sizes, least, m, canary_records, seed)

    groups = (splits.aux, splits.calibration, splits.test, splits.canaries)
    assert tuple(map(len, groups)) == (sizes.aux, sizes.calibration, sizes.test, sizes.canaries)
    ids = [one.id for group in groups for one in group]
    assert len(set(ids)) == len(ids)
    original = {one.id: one for one in users}
    for one in (*splits.aux, *splits.calibration, *splits.test):
        assert len(one.records) == min(m, len(original[one.id].records))
        assert distinct_records(original[one.id]) >= least
        assert is_subsequence(one, original[one.id])
    for one in splits.canaries:
        assert len(one.records) == len(set(one.records)) == canary_records
        assert is_subsequence(one, original[one.id])


def is_subsequence(part, whole):
    pairs = iter(zip(whole.records, whole.labels, strict=True))
    return all(pair in pairs for pair in zip(part.records, part.labels, strict=True))


@given(st.permutations([numbered(f"user {i}", 3 + i) for i in range(12)]), st.integers(0, 5))
def test_splits_do_not_depend_on_the_order_of_the_source(users, seed):
    ordered = sorted(users, key=lambda one: one.id)
    sizes = SplitSizes(2, 3, 4, 2)
    assert split_users(table(*users), sizes, 4, 5, 5, seed) == split_users(table(*ordered), sizes, 4, 5, 5, seed)


def test_another_seed_gives_other_splits_and_other_records():
    users = table(*(numbered(f"user {i}", 20) for i in range(60)))
    one, other = (split_users(users, SplitSizes(10, 10, 10, 5), 5, 8, 8, seed) for seed in (1, 2))
    assert {user.id for user in one.test} != {user.id for user in other.test}
    assert cap(users.users[0], 8, 1) != cap(users.users[0], 8, 2)


def test_every_user_and_every_record_has_its_turn():
    users = table(*(numbered(f"user {i}", 6) for i in range(8)))
    drawn = [split_users(users, SplitSizes(1, 1, 1, 1), 1, 2, 2, seed) for seed in range(200)]
    for group in ("aux", "calibration", "test", "canaries"):
        assert {getattr(splits, group)[0].id for splits in drawn} == {f"user {i}" for i in range(8)}
    assert {text for seed in range(200) for text in cap(users.users[0], 2, seed).records} == set(users.users[0].records)


def test_a_user_below_the_cap_is_kept_whole():
    one = numbered("u", 5)
    assert cap(one, 5, 0) is one


def test_distinct_keeps_first_occurrences_with_their_labels():
    one = User("u", ("b", "a", "b", "c", "a"), ("1", "2", "3", "4", "5"))
    assert distinct(one) == User("u", ("b", "a", "c"), ("1", "2", "4"))


def test_repetitions_do_not_make_a_canary():
    repeating, varied = user("repeating", *["same"] * 9), numbered("varied", 3)
    splits = split_users(table(repeating, varied), SplitSizes(0, 0, 1, 1), 1, 9, 3, 0)
    assert [one.id for one in splits.canaries] == ["varied"]
    assert splits.test[0] == repeating


def test_too_few_users_says_how_many_are_there_and_needed():
    users = table(*(numbered(f"user {i}", 4) for i in range(6)), *(numbered(f"big {i}", 9) for i in range(2)))
    with pytest.raises(DataError, match=r"canaries need 3 users with at least 8 different records, but 2 are there"):
        split_users(users, SplitSizes(1, 1, 1, 3), 4, 9, 8, 0)
    with pytest.raises(
        DataError,
        match=r"test 5\) need 9 users with at least 4 different records, but 7 are there besides the 1 canaries",
    ):
        split_users(users, SplitSizes(2, 2, 5, 1), 4, 9, 8, 0)
    splits = split_users(users, SplitSizes(2, 2, 3, 1), 4, 9, 8, 0)
    assert (
        len({one.id for group in (splits.aux, splits.calibration, splits.test, splits.canaries) for one in group}) == 8
    )


@pytest.mark.parametrize(
    ("least", "m", "canary_records", "told"),
    [(0, 4, 4, "min_records"), (1, 0, 4, "max_records"), (1, 4, 0, "canary_records"), (1, 4, 5, "capped at 4")],
)
def test_numbers_out_of_range(least, m, canary_records, told):
    with pytest.raises(DataError, match=told):
        split_users(table(numbered("u", 9)), SplitSizes(0, 0, 1, 0), least, m, canary_records, 0)


def test_negative_sizes_are_refused():
    with pytest.raises(DataError, match="calibration"):
        SplitSizes(1, -1, 1, 1)
