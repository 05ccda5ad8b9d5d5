"""`coalmine audit disclosures`: three files in, a verdict out; and every way in which files can be wrong."""

import csv
import json
import sys
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.disclosures import records, secrets

from coalmine.auditor.disclosure.result import DisclosureVerdict
from coalmine.auditor.disclosure.settings import Settings
from coalmine.clients.data.files import FileSource
from coalmine.clients.data.names import column_names
from coalmine.clients.data.rows import Columns
from coalmine.clients.data.stream import records as stream_records
from coalmine.clients.data.stream import survey
from coalmine.deploy import cli
from coalmine.deploy.disclosure.classes import feature_classes
from coalmine.deploy.disclosure.files import ThreeFiles, open_files
from coalmine.deploy.disclosure.run import _silent as silent
from coalmine.deploy.disclosure.run import audit_files, audit_output
from coalmine.protocol.errors import DataError, StudyError


@pytest.fixture
def coalmine(monkeypatch, capsys):
    """Runs the entry point; gives code, stdout, stderr."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["coalmine", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code or 0, *capsys.readouterr()

    return call


def write(path, rows, header=("user", "text")):
    if path.suffix == ".parquet":
        columns = list(zip(*rows, strict=True))
        pq.write_table(pa.table(dict(zip(header, map(list, columns), strict=True))), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows))
    else:
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([header, *rows])
    return path


def three(folder, suffix=".csv", users=120, copied=20, header=("user", "text")):
    """Two records a user; ``copied`` training records are in the output."""
    rng = np.random.default_rng(3)
    texts = records(2 * users, rng)
    rows = [(f"u{index // 2}", text) for index, text in enumerate(texts)]
    inside = rng.random(users) < 0.5
    train = [row for index, row in enumerate(rows) if inside[index // 2]]
    holdout = [row for index, row in enumerate(rows) if not inside[index // 2]]
    output = [(text,) for _, text in train[: 2 * copied : 2]] + [(text,) for text in records(60, rng)]
    output = [
        (text.replace("secret-", "public-"),) if index >= copied else (text,) for index, (text,) in enumerate(output)
    ]
    return ThreeFiles(
        write(folder / f"train{suffix}", train, header),
        write(folder / f"holdout{suffix}", holdout, header),
        write(folder / f"synthetic{suffix}", output, (header[1],)),
    )


def words(files, *more):
    return (
        "audit", "disclosures", "--train", files.train, "--holdout", files.holdout, "--synthetic", files.synthetic,
        "--classes", "regurgitation", *more,
    )  # fmt: skip


def run(files, **more):
    return audit_files(files, lambda: [secrets()], **more).audit


def refuses(files, match, **more):
    with pytest.raises(DataError, match=match) as error:
        run(files, **more)
    assert error.value.exit_code == 2
    return str(error.value)


def test_a_newcomer_with_three_csv_files_gets_a_verdict(tmp_path, coalmine):
    files = three(tmp_path)
    code, out, err = coalmine(*words(files, "--assignment", "bernoulli", "--out", tmp_path / "audit", "--no-mlflow"))
    assert code == 0
    assert "regurgitation: leaks" in out
    assert "phantoms" in out
    assert "confidence" in out
    assert "report:" in err
    assert (tmp_path / "audit" / "report.html").exists()
    assert "secret-" not in out + err + (tmp_path / "audit" / "report.html").read_text()


def test_programs_get_json_alone(tmp_path, coalmine):
    code, out, _ = coalmine(*words(three(tmp_path), "--json", "--k", "1,2"))
    assert code == 0
    found = json.loads(out)
    assert (found["verdict"], found["assurance"], found["assignment"]) == ("leaks", "heuristic", "unknown")
    assert [sweep["k"] for sweep in found["classes"][0]["tests"]["sweeps"]] == [1, 2]
    assert not list(tmp_path.glob("mlflow*"))


def test_text_is_shown_on_request_only_and_needs_a_folder(tmp_path, coalmine):
    files = three(tmp_path)
    code, _, err = coalmine(*words(files, "--show-text"))
    assert (code, err.count("\n")) == (2, 1)
    assert "--out" in err
    code, *_ = coalmine(*words(files, "--show-text", "--out", tmp_path / "o", "--no-mlflow"))
    assert code == 0
    assert "secret-" in (tmp_path / "o" / "witnesses.html").read_text()


def test_swapped_splits_are_said_aloud_and_not_called_chance(tmp_path, coalmine):
    files = three(tmp_path)
    swapped = ThreeFiles(files.holdout, files.train, files.synthetic)
    code, out, _ = coalmine(*words(swapped, "--assignment", "bernoulli", "--json"))
    assert code == 0
    found = json.loads(out)
    (told,) = (one["reasons"] for one in found["classes"])
    assert found["verdict"] != "leaks"
    assert any("are train and holdout swapped" in reason for reason in told)
    assert not any("within chance" in reason for reason in told)
    assert any("equal a held-out record" in warning and "swapped?" in warning for warning in found["warnings"])


def test_a_column_of_users_in_one_split_alone_is_refused(tmp_path, coalmine):
    files = three(tmp_path)
    files.holdout.write_text(files.holdout.read_text().replace("user,text", "person,text"))
    code, out, err = coalmine(*words(files))
    assert (code, out) == (2, "")
    assert "holdout.csv: there is no column 'user', which the other split has" in err
    assert "--user" in err


def wrong_contents():
    """Name of a file, its content (none: no such file; a word: a folder) and what is said of it."""
    yield "a.csv", None, "no such file"
    yield "a.csv", "folder", "a folder"
    yield "a.csv", b"", "the file is empty"
    yield "a.csv", bytes(range(255, 127, -1)), "the header has invalid UTF-8"
    yield "a.csv", "user,text\nu1,caf\xe9\n".encode("latin-1"), "line 2 has invalid UTF-8"
    yield "a.csv", "user,text\nu1,x\n".encode("utf-16"), "the header has invalid UTF-8"
    yield "a.csv", b"u1,secret words\nu2,secret words\n", "no column 'text'; columns in the first line: 2"
    yield "a.jsonl", b'{"user": "u1", "text": "secret words"\n', "line 1 has malformed JSON"
    yield "a.jsonl", b"[" * 100_000 + b"\n", "a nesting beyond all measure"
    yield "a.parquet", b"PAR1junk", "not a readable Parquet file"
    yield "a.parquet", "folder", "a folder"
    yield "a.txt", b"a", "the extension '.txt' is unknown"


@pytest.mark.parametrize(("name", "content", "said"), list(wrong_contents()))
@pytest.mark.parametrize("option", ["--train", "--holdout", "--synthetic"])
def test_a_file_is_told_its_own_fault(tmp_path, coalmine, option, name, content, said):
    files, path = three(tmp_path), tmp_path / name
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    code, out, err = coalmine(*words(files, option, path))
    assert (code, out) == (2, "")
    assert said in err
    assert "other split" not in err
    assert "secret" not in err
    assert "Traceback" not in err


def test_an_audit_is_replaced_on_request_only_and_takes_private_text_with_it(tmp_path, coalmine):
    files, folder = three(tmp_path), tmp_path / "o"
    assert coalmine(*words(files, "--show-text", "--out", folder, "--no-mlflow"))[0] == 0
    before = (folder / "findings.json").read_bytes()
    code, _, err = coalmine(*words(files, "--seed", "1", "--out", folder, "--no-mlflow"))
    assert code == 2
    assert "it holds an audit already" in err
    assert "--force" in err
    assert (folder / "findings.json").read_bytes() == before
    assert coalmine(*words(files, "--out", folder, "--no-mlflow", "--force"))[0] == 0
    assert not (folder / "witnesses.html").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        ("--classes", "pii,semantics"),
        ("--classes", "regurgitation,regurgitation"),
        ("--assignment", "random"),
        ("--guesses", "best"),
        ("--k", "one"),
        ("--k", "0"),
        ("--rarity", "2"),
        ("--alpha", "1"),
        ("--delta", "1e-5"),
        ("--p", "0"),
        ("--text", "txt"),
        ("--train", "nowhere.csv"),
        ("--canary", "no-such-column"),
    ],
)
def test_mistakes_end_with_one_message(tmp_path, coalmine, wrong):
    code, out, err = coalmine(*words(three(tmp_path), *wrong))
    assert code == 2
    assert out == ""
    assert err.splitlines()[-1].startswith("coalmine: ")
    assert "Traceback" not in err


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_every_format_gives_the_same_findings(tmp_path, suffix):
    found = run(three(tmp_path, suffix))
    match = found.classes[0].tests.sweeps[0].match
    assert (match.matches, match.train) == (20, 20)
    assert (found.unit, found.private_records, found.synthetic_records) == ("user", 240, 80)
    assert found.facts["column of users"] == "user"
    assert not any("column" in warning for warning in found.warnings)


def test_without_a_user_column_every_row_is_a_user_and_that_is_said(tmp_path):
    files = three(tmp_path, header=("id", "text"))
    found = run(files)
    assert (found.unit, found.users) == ("record", 240)
    assert any("every row" in warning for warning in found.warnings)
    named = ThreeFiles(files.train, files.holdout, files.synthetic, user="id")
    assert (run(named).unit, run(named).users) == ("user", 120)


def test_users_in_both_splits_are_counted_and_refused(tmp_path):
    files = three(tmp_path)
    write(files.holdout, [("u0", "a"), ("u1", "b"), ("new", "c")] + [(f"u{n}", "d") for n in range(120)])
    said = refuses(files, r"\d+ users are in both splits")
    assert "in train and 121 in holdout" in said
    assert "u0" not in said


def test_copies_across_splits_are_counted_and_said(tmp_path):
    files = three(tmp_path)
    with files.train.open("a", newline="") as train, files.holdout.open("a", newline="") as holdout:
        csv.writer(train).writerows([("x", "same words"), ("y", "others")])
        csv.writer(holdout).writerows([("z", "same words"), ("w", "same words")])
    said = " ".join(run(files).warnings)
    assert "1 texts are in train and in holdout alike (2 of" in said
    assert "20 of 80 synthetic records equal a training record" in said


@pytest.mark.parametrize("which", ["train", "holdout", "synthetic"])
@pytest.mark.parametrize("content", ["", "user,text\n"])
def test_an_empty_file_is_named(tmp_path, which, content):
    files = three(tmp_path)
    getattr(files, which).write_text(content)
    assert which in refuses(files, "empty|no record")


def test_sizes_far_from_the_default_rate_are_refused(tmp_path):
    from coalmine.auditor.disclosure.assignment import AssignmentKind

    files = three(tmp_path)
    write(files.holdout, [(f"h{n}", f"text {n}") for n in range(2000)])
    said = refuses(files, "default inclusion rate 0.5", kind=AssignmentKind.BERNOULLI)
    assert "fixed-size" in said
    assert run(files, kind=AssignmentKind.FIXED_SIZE).p < 0.1


def test_texts_of_one_word(tmp_path):
    files = ThreeFiles(
        write(tmp_path / "train.csv", [(n, f"w{n}") for n in range(30)]),
        write(tmp_path / "holdout.csv", [(n + 30, f"v{n}") for n in range(30)]),
        write(tmp_path / "synthetic.csv", [(f"w{n}",) for n in range(30)], ("text",)),
    )
    found = audit_files(files, lambda: feature_classes(["regurgitation"])).audit
    assert found.verdict is DisclosureVerdict.TOO_LITTLE


@pytest.mark.parametrize("which", ["train", "synthetic"])
def test_columns_that_hold_no_text(tmp_path, which):
    files = three(tmp_path, ".parquet")
    path = getattr(files, which)
    columns = {"user": ["a", "b"], "text": [1.5, 2.5]} if which == "train" else {"text": [1, 2]}
    pq.write_table(pa.table(columns), path)
    refuses(files, "holds (double|int64)")


def test_numbers_among_json_texts_are_counted_and_not_quoted(tmp_path):
    files = three(tmp_path, ".jsonl")
    with files.train.open("a") as file:
        file.write('{"user": "x", "text": 31415}\n{"user": "y", "text": null}\n')
    said = refuses(files, "a record that is not text")
    assert "31415" not in said


def test_huge_cells_are_read(tmp_path):
    files = three(tmp_path)
    with files.train.open("a", newline="") as file:
        csv.writer(file).writerow(("long", "word " * 200_000))
    assert run(files).private_records == 241


def test_output_that_is_the_training_file(tmp_path):
    files = three(tmp_path)
    found = run(ThreeFiles(files.train, files.holdout, files.train))
    assert found.verdict is DisclosureVerdict.LEAKS
    assert any("equal a training record" in warning for warning in found.warnings)


def test_one_column_without_a_header_that_fits(tmp_path):
    files = three(tmp_path)
    files.synthetic.write_text("some words\nother words\n")
    refuses(files, "no column 'text'")


def test_inserted_canaries_are_marked_by_a_column(tmp_path):
    train = [(n, f"secret-{n}", "yes" if n < 10 else "no") for n in range(40)]
    holdout = [(n, f"secret-{n}", "TRUE" if n < 60 else "") for n in range(50, 90)]
    files = ThreeFiles(
        write(tmp_path / "train.csv", train, ("user", "text", "inserted")),
        write(tmp_path / "holdout.csv", holdout, ("user", "text", "inserted")),
        write(tmp_path / "synthetic.csv", [(f"secret-{n}",) for n in range(30)], ("text",)),
        canary="inserted",
    )
    found = run(files)
    assert found.canaries == (10, 10)
    assert found.classes[0].tests.sweeps[0].match.train == 30
    assert found.classes[0].without_canaries.sweeps[0].match.train == 20
    write(files.train, [(1, "x", "maybe")], ("user", "text", "inserted"))
    assert "maybe" not in refuses(files, "neither yes nor no")


def test_a_file_that_changes_meanwhile_is_noticed(tmp_path):
    files = three(tmp_path)
    material = open_files(files, silent)
    write(files.train, [("other", "text")])
    with pytest.raises(DataError, match="changed"):
        list(material.private())


def test_memory_does_not_grow_with_the_files(tmp_path):
    """100 times the records, most of them longer: the peak of both readings stays far below the size of the file."""
    path = write(tmp_path / "big.csv", [(n % 50, f"{n} " + "word " * 400) for n in range(10_000)])
    assert path.stat().st_size > 20_000_000
    source = FileSource(path, Columns("user", "text", None))
    tracemalloc.start()
    seen = survey(source)
    assert sum(1 for _ in stream_records(seen)) == 10_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (seen.user_count, seen.records) == (50, 10_000)
    assert peak < 2_000_000


def test_streaming_gives_the_records_in_order(tmp_path):
    path = write(tmp_path / "few.csv", [("b", "one"), ("a", "two"), ("b", "three")])
    by_user = survey(FileSource(path, Columns("user", "text", None)))
    assert list(stream_records(by_user)) == [(0, "one"), (1, "two"), (0, "three")]
    by_row = survey(FileSource(path, Columns(None, "text", None)))
    assert list(stream_records(by_row)) == [(0, "one"), (1, "two"), (2, "three")]
    assert by_row.user_count == 3


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_column_names_are_seen_from_the_beginning(tmp_path, suffix):
    assert column_names(write(tmp_path / f"x{suffix}", [("a", "b")])) == ("user", "text")


def test_column_names_of_what_cannot_be_read_are_none(tmp_path):
    for name, content in (
        ("x.csv", ""),
        ("x.jsonl", "[1]\n"),
        ("y.jsonl", "no json\n"),
        ("z.jsonl", "[" * 100_000),
        ("x.parquet", "no"),
        ("x.txt", "a"),
    ):
        (tmp_path / name).write_text(content)
        assert column_names(tmp_path / name) == ()
    (tmp_path / "folder.parquet").mkdir()
    assert column_names(tmp_path / "folder.parquet") == ()
    assert column_names(tmp_path / "missing.csv") == ()


def test_a_blank_line_before_a_header_is_skipped_as_the_reader_does(tmp_path):
    (tmp_path / "x.csv").write_text("\nuser,text\nu,t\n")
    assert column_names(tmp_path / "x.csv") == ("user", "text")


def test_records_in_memory_are_audited_the_same_way():
    rng = np.random.default_rng(0)
    texts = records(100, rng)
    found = audit_output(
        [[text] for text in texts[:50]], [[text] for text in texts[50:]], texts[:20], [secrets()], settings=Settings()
    )
    assert found.audit.verdict is DisclosureVerdict.LEAKS


def test_classes_are_known_by_name():
    with pytest.raises(StudyError, match="did you mean 'pii'"):
        feature_classes(["pi"])
    with pytest.raises(StudyError, match="none is"):
        feature_classes([])


@pytest.mark.parametrize(
    ("name", "content"),
    [("d.json", "[3, 1, 0, 2]"), ("d.json", '{"d": [3, 1, 0, 2], "T": 5}'), ("d.txt", "3 1\n0,2\n"), ("d.npy", None)],
)
def test_the_calculators_answer_with_the_agreed_keys(tmp_path, coalmine, name, content):
    path = tmp_path / name
    if content is None:
        np.save(path, np.array([3, 1, 0, 2]))
    else:
        path.write_text(content)
    code, out, _ = coalmine("calc", "feature-match", "--d", path, "--train", 5, "--p", 0.5, "--alpha", 0.05, "--json")
    assert code == 0
    found = json.loads(out)
    assert list(found) == ["p_hat", "p_value", "critical", "eps_one_sided", "eps_printed", "exact_p_value", "exact_eps"]
    assert found["exact_p_value"] == pytest.approx(2 / 8)
    code, out, _ = coalmine(
        "calc", "user-match", "--guesses", 20, "--correct", 20, "--p", 0.5, "--alpha", 0.05, "--json"
    )
    assert list(json.loads(out)) == ["eps"]


@pytest.mark.parametrize(
    "content", ["", "[]", "[-1]", "[0.5]", "words", '{"e": [1]}', "[[1]]", "[1e300]", '["a"]', "[0, 0]"]
)
def test_counts_that_are_none(tmp_path, coalmine, content):
    path = tmp_path / "d.json"
    path.write_text(content)
    code, out, err = coalmine("calc", "feature-match", "--d", path, "--train", 0, "--json")
    assert (code, out) == (2, "")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "line", ["--guesses 0 --correct 0", "--guesses 3 --correct 4", "--guesses 3 --correct 2 --p 1"]
)
def test_guesses_that_cannot_be(coalmine, line):
    code, out, _ = coalmine("calc", "user-match", *line.split(), "--json")
    assert (code, out) == (2, "")
