"""Columns of files without users."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coalmine.clients.data.texts import read_columns
from coalmine.protocol.errors import DataError

ROWS = [("first, with a comma", "1"), ('line\nbreak and "quotes"', "0"), ("", "1"), ("x" * 200_000, "0")]


def test_three_formats_say_the_same(tmp_path):
    (tmp_path / "a.csv").write_text(
        "member,other,text\n" + "".join(f'{m},?,"{t.replace(chr(34), chr(34) * 2)}"\n' for t, m in ROWS)
    )
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"text": t, "member": int(m)}) for t, m in ROWS))
    pq.write_table(pa.table({"text": [t for t, _ in ROWS], "member": [m for _, m in ROWS]}), tmp_path / "a.parquet")
    for name in ("a.csv", "a.jsonl", "a.parquet"):
        assert list(read_columns(tmp_path / name, ("text", "member"))) == ROWS


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", b"", "empty"),
        ("a.csv", b"text\n\xff\xfe\n", "UTF-8"),
        ("a.csv", b"txt\nsecret\n", "no column 'text'"),
        (
            "a.csv",
            b"1,secret\n2,secret\n",
            "no column 'text'; columns in the first line: 2 .is the first",
        ),
        ("a.csv", b"text,b\nsecret\n", "1 fields instead of 2"),
        ("a.csv", b'text\n"secret', "not valid CSV"),
        ("a.jsonl", b'{"text": "secret"}\n{', "line 2: not valid JSON"),
        ("a.jsonl", b"[1]\n", "no JSON object"),
        ("a.jsonl", b'{"text": ["secret"]}\n', "holds no text"),
        ("a.parquet", b"secret", "Parquet"),
        ("a.txt", b"secret", "extension"),
        (None, None, "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_said_without_its_content(name, content, says, tmp_path):
    path = tmp_path / (name or "missing.csv")
    if name:
        path.write_bytes(content)
    with pytest.raises(DataError, match=says) as error:
        list(read_columns(path, ("text",)))
    assert "secret" not in str(error.value)
