"""Banks on disk: whole or not at all, and nothing else is taken for one."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coalmine.protocol.bank import Bank, commit
from coalmine.protocol.errors import BankError, StorageError
from coalmine.server import bank_file
from coalmine.server.bank_file import read_bank, write_bank

BANK = Bank(("one", "zwei", "drei\n🐤"), ("x", "", "z"), "encoder:1")
ENCODER = {b"coalmine.encoder": b"encoder:1"}


def listed(folder):
    return sorted(path.name for path in folder.iterdir())


def parquet(path, columns, metadata=ENCODER):
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), path)
    return path


def test_a_bank_comes_back_as_it_was(tmp_path):
    path = tmp_path / "deep" / "er" / "bank.parquet"
    write_bank(BANK, path)
    assert read_bank(path) == BANK
    assert commit(read_bank(path)) == commit(BANK)
    assert listed(path.parent) == ["bank.parquet"]


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=5, unique=True))
def test_any_text_comes_back(tmp_path_factory, texts):
    path = tmp_path_factory.getbasetemp() / "any.parquet"
    bank = Bank(tuple(texts), ("",) * len(texts), "e")
    write_bank(bank, path)
    assert read_bank(path) == bank


@pytest.mark.parametrize(
    ("columns", "metadata", "message"),
    [
        ({"text": ["a"], "tag": ["b"]}, ENCODER, r"not a bank: columns \['text', 'tag'\]"),
        ({"text": ["a"], "label": ["b"]}, None, "not a bank"),
        ({"text": ["a"], "label": ["b"]}, {b"other": b"e"}, "encoder's id"),
        ({"text": ["a", "b", "a"], "label": ["", "", ""]}, ENCODER, "candidate 2: .*occurs again"),
        ({"text": ["a", " "], "label": ["", ""]}, ENCODER, "candidate 1: .*blank"),
        ({"text": ["a", None], "label": ["", ""]}, ENCODER, "not text"),
        ({"text": [1, 2], "label": ["", ""]}, ENCODER, "not text"),
        ({"text": [b"a"], "label": [""]}, ENCODER, "not text"),
        ({"text": ["a"], "label": [7]}, ENCODER, "not text"),
    ],
)
def test_another_table_is_no_bank(tmp_path, columns, metadata, message):
    with pytest.raises(BankError, match=message) as caught:
        read_bank(parquet(tmp_path / "bank.parquet", columns, metadata))
    assert str(tmp_path / "bank.parquet") in str(caught.value)


def test_a_missing_label_is_no_label(tmp_path):
    path = parquet(tmp_path / "bank.parquet", {"text": ["a", "b"], "label": ["x", None]})
    assert read_bank(path).labels == ("x", "")


def test_what_is_missing_or_unreadable_is_named(tmp_path):
    with pytest.raises(BankError, match=r"no such file.*bank build"):
        read_bank(tmp_path / "none.parquet")
    with pytest.raises(BankError):
        read_bank(tmp_path)
    for content in (b"", b"text,label\n", b"PAR1" * 20):
        (tmp_path / "bank.parquet").write_bytes(content)
        with pytest.raises(BankError, match=r"bank\.parquet: cannot be read as Parquet"):
            read_bank(tmp_path / "bank.parquet")


def test_a_damaged_bank_is_refused_or_differs(tmp_path):
    path = tmp_path / "bank.parquet"
    write_bank(BANK, path)
    whole = path.read_bytes()
    for cut in range(0, len(whole), 37):
        path.write_bytes(whole[:cut])
        with pytest.raises(BankError):
            read_bank(path)
    garbled = whole.replace(b"zwei", b"zw\xff\xff")
    assert garbled != whole
    path.write_bytes(garbled)
    with pytest.raises(BankError):
        read_bank(path)


def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "bank.parquet"
    write_bank(BANK, path)

    def full(table, where):
        where.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bank_file.pq, "write_table", full)
    with pytest.raises(StorageError, match=r"bank\.parquet: .*No space left"):
        write_bank(BANK.replace({0: "new"}), path)
    with pytest.raises(StorageError):
        write_bank(BANK, tmp_path / "other.parquet")
    assert listed(tmp_path) == ["bank.parquet"]
    assert read_bank(path) == BANK


def test_an_interrupted_write_leaves_what_was_there(tmp_path, monkeypatch):
    def interrupted(table, where):
        where.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(bank_file.pq, "write_table", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_bank(BANK, tmp_path / "bank.parquet")
    assert listed(tmp_path) == []


def test_a_place_that_cannot_hold_a_file_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "file" / "bank.parquet", tmp_path / "folder"):
        with pytest.raises(StorageError, match="cannot be written"):
            write_bank(BANK, path)
    assert listed(tmp_path) == ["file", "folder"]
