"""JSONL, CSV and Parquet: what is read, and what each kind of bad input is told."""

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coalmine.clients.data.files import FileSource, examine_file, read_file
from coalmine.clients.data.rows import Columns
from coalmine.protocol.errors import DataError

SECRET = "nobody may ever read this"


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def error_of(path, **options):
    with pytest.raises(DataError) as caught:
        read_file(FileSource(path, **options))
    assert SECRET not in str(caught.value)
    assert caught.value.exit_code == 2
    assert caught.value.where is not None
    assert path.name in caught.value.where
    assert caught.value.remedy
    return str(caught.value)


def jsonl(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def good(user="u", text="some text"):
    return {"user": user, "text": text}


# ---------------------------------------------------------------------------------------------------- what is read


def write_all_formats(folder: Path, rows):
    """The same rows as JSONL, CSV and Parquet."""
    columns = ("user", "text", "label")
    (folder / "rows.jsonl").write_text(
        "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows), "utf-8"
    )
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
    pq.write_table(
        pa.table({name: [row[i] for row in rows] for i, name in enumerate(columns)}), folder / "rows.parquet"
    )
    return [folder / f"rows.{kind}" for kind in ("jsonl", "csv", "parquet")]


IDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=6).filter(str.strip)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=12).filter(str.strip)
LABELS = st.sampled_from(["", "red", "größe"])


@settings(max_examples=60)
@given(st.lists(st.tuples(IDS, TEXTS, LABELS), min_size=1, max_size=8))
def test_all_formats_give_the_table_that_was_written(tmp_path_factory, rows):
    expected = {}
    for user, text, label in rows:
        expected.setdefault(user, []).append((text, label))
    for path in write_all_formats(tmp_path_factory.mktemp("formats"), rows):
        table = read_file(FileSource(path))
        assert {user.id: list(zip(user.records, user.labels, strict=True)) for user in table.users} == expected
        assert [user.id for user in table.users] == list(expected), "users in order of first appearance"


def test_columns_have_any_name(write):
    path = write("chat.jsonl", jsonl({"nick": "ann", "body": "hello", "year": 2006}))
    (user,) = read_file(FileSource(path, Columns("nick", "body", "year"))).users
    assert (user.id, user.records, user.labels) == ("ann", ("hello",), ("2006",))


@pytest.mark.parametrize("name", ["x.ndjson", "X.JSONL"])
def test_extensions_of_jsonl(write, name):
    assert len(read_file(FileSource(write(name, jsonl(good()))))) == 1


def test_a_byte_order_mark_crlf_and_blank_lines_are_fine(write):
    path = write("a.csv", b"\xef\xbb\xbfuser,text\r\nu,one\r\n\r\nu,two\r\n")
    assert read_file(FileSource(path)).users[0].records == ("one", "two")
    path = write("a.jsonl", b"\xef\xbb\xbf" + b'{"user":"u","text":"one"}\r\n\r\n{"user":"u","text":"two"}')
    assert read_file(FileSource(path)).users[0].records == ("one", "two")


@pytest.mark.parametrize(
    ("value", "id"),
    [(7, "7"), (7.0, "7"), (7.5, "7.5"), ("7", "7"), (-1, "-1"), (" a", " a"), (10**30, "1" + "0" * 30)],
)
def test_user_ids_may_be_numbers(write, value, id):
    assert read_file(FileSource(write("a.jsonl", jsonl(good(value))))).users[0].id == id


def test_a_whole_number_and_its_text_are_one_user(write):
    path = write("a.jsonl", jsonl(good(1, "a"), good(1.0, "b"), good("1", "c")))
    assert [user.records for user in read_file(FileSource(path)).users] == [("a", "b", "c")]


def test_true_is_not_the_number_one(write):
    assert "line 2 has a user id that is neither" in error_of(write("a.jsonl", jsonl(good(1), good(True))))


@pytest.mark.parametrize(
    ("value", "label"),
    [("x", "x"), (None, ""), ("  ", ""), (3, "3"), (3.0, "3"), (2.5, "2.5"), (True, "true"), (float("nan"), "")],
)
def test_labels_are_any_single_value(write, value, label):
    assert read_file(FileSource(write("a.jsonl", jsonl({**good(), "label": value})))).users[0].labels == (label,)


def test_labels_can_be_left_alone(write):
    path = write("a.jsonl", jsonl({**good(), "label": ["no", "scalar"]}))
    assert read_file(FileSource(path, Columns(label=None))).users[0].labels == ("",)


def test_control_characters_are_content_but_not_in_ids(write):
    path = write("a.jsonl", jsonl(good("u", "\x03" + "4red\tand\nblue\x1b")))
    assert read_file(FileSource(path)).users[0].records == ("\x034red\tand\nblue\x1b",)
    assert "line 1 has a user id that is neither" in error_of(write("b.jsonl", jsonl(good("u\x1b[2J"))))


def test_quoted_csv_fields_hold_commas_quotes_and_line_breaks(write):
    path = write("a.csv", 'user,text\nu,"one, ""two""\nthree"\n')
    assert read_file(FileSource(path)).users[0].records == ('one, "two"\nthree',)


def test_parquet_columns_of_other_types(tmp_path):
    path = tmp_path / "a.parquet"
    content = {
        "user": pa.array([1.0, 1.0, 2.0]),
        "text": pa.array(["a", "b", "a"]).dictionary_encode(),
        "label": pa.array([1, None, 3]),
        "more": [[1], [2], [3]],
    }
    pq.write_table(pa.table(content), path)
    first, second = read_file(FileSource(path)).users
    assert (first.id, first.records, first.labels) == ("1", ("a", "b"), ("1", ""))
    assert (second.id, second.records, second.labels) == ("2", ("a",), ("3",))


def test_parquet_is_read_in_batches_without_losing_count(tmp_path, monkeypatch):
    monkeypatch.setattr("coalmine.clients.data.columnar._BATCH_ROWS", 3)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"user": ["u"] * 10, "text": [f"text {i}" for i in range(9)] + [" "]}), path)
    reading = examine_file(FileSource(path))
    assert reading.table.users[0].records == tuple(f"text {i}" for i in range(9))
    assert [str(flaw) for flaw in reading.flaws] == ["row 10 has a missing or blank record"]


# ------------------------------------------------------------------------------------------------- what is refused


def test_no_such_file_folder_extension(tmp_path, write):
    assert "no such file" in error_of(tmp_path / "missing.csv")
    assert "is a folder" in error_of(tmp_path)
    message = error_of(write("a.json", "[]"))
    assert "'.json' is unknown" in message
    assert ".jsonl, .ndjson, .csv, .parquet" in message
    assert "no extension" in error_of(write("a", "x"))


def test_a_path_that_leads_nowhere(tmp_path):
    path = tmp_path / "loop.csv"
    path.symlink_to(path)
    assert "cannot be read" in error_of(path)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_an_empty_file(write, name):
    assert "empty" in error_of(write(name, ""))


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_file_of_blank_lines(write, name):
    assert "empty" in error_of(write(name, "\n\n"))


def test_a_header_without_rows(write, tmp_path):
    assert "there is no record" in error_of(write("a.csv", "user,text\n"))
    pq.write_table(
        pa.table({"user": pa.array([], pa.string()), "text": pa.array([], pa.string())}), tmp_path / "a.parquet"
    )
    assert "there is no record" in error_of(tmp_path / "a.parquet")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_misspelt_column_names_the_nearest(tmp_path, kind):
    paths = {path.suffix[1:]: path for path in write_all_formats(tmp_path, [("u", SECRET, "x")])}
    message = error_of(paths[kind], columns=Columns(text="txet"))
    assert "no column 'txet'" in message
    assert ("did you mean 'text'?" in message) == (kind != "csv")
    assert "no column 'usr'" in error_of(paths[kind], columns=Columns(user="usr"))
    assert "no column 'year'" in error_of(paths[kind], columns=Columns(label="year"))


def test_a_csv_file_without_a_header_keeps_its_first_record_to_itself(write):
    path = write("a.csv", f"{SECRET},u1\n{SECRET},u2\n")
    for columns in (Columns(), Columns(user=None), Columns(user=None, text=SECRET[:-1])):
        with pytest.raises(DataError) as error:
            read_file(FileSource(path, columns))
        assert "columns in the first line: 2" in str(error.value)
        assert "is the first line a header?" in error.value.remedy
        assert SECRET not in str(error.value)
        assert "u1" not in str(error.value)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_the_label_column_of_the_default_name_may_be_missing(tmp_path, kind):
    paths = {path.suffix[1:]: path for path in write_all_formats(tmp_path, [("u", "body", "x")])}
    paths["csv"].write_text("user,text\nu,body\n")
    paths["jsonl"].write_text(jsonl(good()))
    pq.write_table(pa.table({"user": ["u"], "text": ["body"]}), paths["parquet"])
    assert read_file(FileSource(paths[kind])).users[0].labels == ("",)


def test_one_column_has_one_role():
    with pytest.raises(DataError, match="two roles"):
        Columns(user="text")


BAD_LINES = [
    ('{"user": "u", "text": "' + SECRET, "malformed JSON: Unterminated string starting at column 23"),
    (f'["u", "{SECRET}"]', "JSON that is not an object"),
    ("[" * 100_000, "malformed JSON: a number or a nesting beyond all measure"),
    (f'{{"text": "{SECRET}"}}', "a missing or blank user id"),
    (f'{{"user": null, "text": "{SECRET}"}}', "a missing or blank user id"),
    (f'{{"user": "  ", "text": "{SECRET}"}}', "a missing or blank user id"),
    (f'{{"user": NaN, "text": "{SECRET}"}}', "a missing or blank user id"),
    (f'{{"user": true, "text": "{SECRET}"}}', "a user id that is neither plain text nor a number"),
    (f'{{"user": Infinity, "text": "{SECRET}"}}', "a user id that is neither plain text nor a number"),
    (f'{{"user": ["{SECRET}"], "text": "x"}}', "a user id that is neither plain text nor a number"),
    (f'{{"user": "\\ud800", "text": "{SECRET}"}}', "a user id that is neither plain text nor a number"),
    ('{"user": "u", "text": ""}', "a missing or blank record"),
    ('{"user": "u", "text": " \\n "}', "a missing or blank record"),
    ('{"user": "u"}', "a missing or blank record"),
    ('{"user": "u", "text": 17}', "a record that is not text"),
    (f'{{"user": "u", "text": ["{SECRET}"]}}', "a record that is not text"),
    (f'{{"user": "u", "text": "{SECRET}\\udfff"}}', "a record that is not text"),
    (f'{{"user": "u", "text": "{SECRET}\\u0000"}}', "a record with a NUL character"),
    (f'{{"user": "u", "text": "x", "label": ["{SECRET}"]}}', "a label that is not a single value"),
]


@pytest.mark.parametrize(("line", "told"), BAD_LINES, ids=range(len(BAD_LINES)))
def test_a_bad_jsonl_line_is_named_by_number_and_reason(write, line, told):
    path = write("a.jsonl", jsonl(good()) + "\n" + line + "\n" + jsonl(good()))
    assert f"line 3 has {told}" in error_of(path)
    reading = examine_file(FileSource(path))
    assert reading.table.users[0].records == ("some text", "some text"), "the good lines are still read"


def test_invalid_utf8_is_named_by_its_line(write):
    bad = b'{"user": "u", "text": "caf\xe9"}\n'
    assert "line 2 has invalid UTF-8: at byte 27" in error_of(write("a.jsonl", jsonl(good()).encode() + bad))
    content = b'user,text\nu,"a\nb"\nu,"c\n\xe9"\nu,d\n'
    assert "line 5 has invalid UTF-8: at byte 1" in error_of(write("a.csv", content))
    assert examine_file(FileSource(write("a.csv", content))).table.users[0].records == ("a\nb", "d")
    assert "the header has invalid UTF-8" in error_of(write("b.csv", b"user,t\xe9xt\n"))
    assert "line 1 has invalid UTF-8" in error_of(write("c.jsonl", jsonl(good()).encode("utf-16")))


def test_invalid_utf8_in_parquet_is_named_by_its_row(tmp_path):
    texts = pa.array([b"fine", b"caf\xe9", b"fine too"]).view(pa.string())
    pq.write_table(pa.table({"user": ["u"] * 3, "text": texts}), tmp_path / "a.parquet")
    assert "row 2 has invalid UTF-8" in error_of(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("u", "another number of fields than the header: 1 instead of 2"),
        (f"u,{SECRET},c", "another number of fields than the header: 3 instead of 2"),
        (f",{SECRET}", "a missing or blank user id"),
        ("u,", "a missing or blank record"),
        ('u,"a"b', "malformed CSV"),
        ("u,a\x00b", "a record with a NUL character"),
        ("u," + "x" * 200_000, "malformed CSV: field larger than field limit"),
    ],
)
def test_a_bad_csv_row_is_named_by_the_line_it_starts_on(write, row, told):
    path = write("a.csv", 'user,text\nu,"spans\ntwo lines"\n' + row + "\nu,after\n")
    assert f"line 4 has {told}" in error_of(path)
    assert examine_file(FileSource(path)).table.users[0].records == ("spans\ntwo lines", "after")


def test_an_unclosed_quote(write):
    assert "line 3 has malformed CSV" in error_of(write("a.csv", f'user,text\nu,a\nu,"{SECRET}\nu,b\n'))


def test_a_column_that_is_there_twice(write, tmp_path):
    assert "column 'text' twice" in error_of(write("a.csv", "user,text,text\nu,a,b\n"))
    twice = pa.Table.from_arrays([pa.array(["u"]), pa.array(["a"]), pa.array(["b"])], ["user", "text", "text"])
    pq.write_table(twice, tmp_path / "a.parquet")
    assert "'text' is there twice" in error_of(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("column", "values", "told"),
    [
        ("user", [True], "holds bool"),
        ("user", [["u"]], "holds list"),
        ("text", [3], "holds int64"),
        ("text", [b"bytes"], "holds binary"),
        ("label", [{"a": 1}], "holds struct"),
    ],
)
def test_a_parquet_column_of_a_type_that_cannot_serve(tmp_path, column, values, told):
    pq.write_table(pa.table({"user": ["u"], "text": ["a"], column: values}), tmp_path / "a.parquet")
    assert f"the column '{column}' {told}" in error_of(tmp_path / "a.parquet")


@pytest.mark.parametrize("damage", ["no parquet at all", "cut", "scribbled"])
def test_a_damaged_parquet_file(tmp_path, damage):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"user": ["u"] * 999, "text": [f"text {i}" for i in range(999)]}), path)
    whole = path.read_bytes()
    path.write_bytes({"cut": whole[:-40], "scribbled": whole[:4] + bytes(999) + whole[1003:]}.get(damage, b"PAR?" * 9))
    assert "not a readable Parquet file" in error_of(path)


def test_bad_records_are_counted_with_their_first_lines(write):
    path = write("a.jsonl", jsonl(*([good(), good(text=" ")] * 30), good(text=7)))
    message = error_of(path)
    assert "30 lines have a missing or blank record (lines 2, 4, 6, 8, 10 and 25 more)" in message
    assert "line 61 has a record that is not text" in message
    assert "on_bad_record: drop" in message


def test_bad_records_are_dropped_on_request_and_counted(write):
    path = write("a.jsonl", jsonl(good(text="one"), good(text=" "), good(text=7), good(text="two"), good("v", "")))
    table = read_file(FileSource(path, on_bad_record="drop"))
    assert [(user.id, user.records) for user in table.users] == [("u", ("one", "two"))]
    assert table.dropped == 3


def test_dropping_records_hides_no_other_fault(write):
    path = write("a.jsonl", jsonl(good(text=" "), good(user=None)))
    message = error_of(path, on_bad_record="drop")
    assert "line 2 has a missing or blank user id" in message
    assert "blank record" not in message


def test_nothing_left_after_dropping(write):
    assert "there is no record" in error_of(write("a.jsonl", jsonl(good(text=" "))), on_bad_record="drop")


def test_every_fault_is_collected(write):
    path = write("a.jsonl", jsonl(good()) + "".join(line + "\n" for line, _ in BAD_LINES))
    reading = examine_file(FileSource(path))
    assert sum(flaw.count for flaw in reading.flaws) == len(BAD_LINES)
    assert {flaw.fault.value for flaw in reading.flaws} == {told.partition(":")[0] for _, told in BAD_LINES}
    assert reading.table.users[0].records == ("some text",)
