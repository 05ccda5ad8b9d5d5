"""What a data set looks like in numbers."""

from dataclasses import asdict

from coalmine.clients.data.describe import describe
from coalmine.clients.data.files import FileSource, examine_file
from coalmine.clients.data.users import User, UserTable


def test_a_small_table_counted_by_hand():
    users = (
        User("ann", ("hello", "hello", "good morning all", "x" * 2001), ("a", "a", "b", "")),
        User("bob", tuple(f"record number {i}" for i in range(32)), ("b",) * 32),
        User("Ann ", ("hello", "  ", "bell \x07 rings"), ("", "", "")),
    )
    table = UserTable(users, "by hand")
    seen = describe(table)
    assert (seen.source, seen.digest) == ("by hand", table.digest)
    assert (seen.users, seen.records) == (3, 39)
    assert seen.records_per_user["min"] == 3
    assert seen.records_per_user["50%"] == 4
    assert seen.records_per_user["max"] == 32
    assert seen.labels == (("b", 33), ("a", 2))
    assert (seen.different_labels, seen.unlabelled) == (2, 4)
    assert (seen.repeated_within, seen.repeated_across) == (1, 1)
    assert (seen.blank, seen.short, seen.long, seen.with_controls) == (1, 4, 1, 1)
    assert seen.users_with_at_least == {16: 1, 32: 1, 64: 0}
    assert seen.problems == (
        "Blank records: 1.",
        "User ids that differ from another one in case or outer white space only: 1.",
        "Records without a label, while others have one: 4.",
        "Records that repeat an earlier one of the same user: 1 (2.6%).",
        "Records over 2,000 characters, more than an encoder reads: 1.",
        "Records with control characters, which are kept as they are: 1.",
    )


def test_nothing_wrong_means_no_problem():
    users = tuple(User(f"u{i}", tuple(f"text {i} {j}" for j in range(16)), ("x",) * 16) for i in range(3))
    assert describe(UserTable(users, "fine")).problems == ()


def test_no_text_is_quoted_even_when_it_stands_in_the_label_column():
    records = tuple(f"private thought {i}" for i in range(300))
    seen = describe(UserTable((User("u", records, records), User("v", records, records)), "a mix-up"))
    assert seen.labels == ()
    assert seen.different_labels == 300
    assert "There are 300 different labels: is this the label column?" in seen.problems
    assert "private" not in repr(asdict(seen))


def test_doubtful_user_columns_are_pointed_out():
    alone = UserTable((User("u", tuple(map(str, range(20))), ("",) * 20),), "one")
    assert "There is only one user." in describe(alone).problems
    singles = UserTable(tuple(User(f"u{i}", (f"text {i}",), ("",)) for i in range(5)), "singles")
    assert "Every user has a single record: is this the user column?" in describe(singles).problems
    assert "No user has 16 different records or more." in describe(singles).problems


def test_an_empty_table():
    seen = describe(UserTable((), "nothing"))
    assert (seen.users, seen.records, seen.records_per_user) == (0, 0, {})
    assert seen.problems == ("No user can be read.",)


def test_the_flaws_of_a_file_are_among_the_problems(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"user,text\nu,one\n,two\nu,\nu,thr\xe9e\nu,four,4\nu,\n")
    reading = examine_file(FileSource(path))
    problems = describe(reading.table, reading.flaws).problems
    assert problems[:4] == (
        "Line 3 has a missing or blank user id.",
        "2 lines have a missing or blank record (lines 4, 7).",
        "Line 5 has invalid UTF-8: at byte 6 of the line.",
        "Line 6 has another number of fields than the header: 3 instead of 2.",
    )
