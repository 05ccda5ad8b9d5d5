"""Real sources: the addresses, saved data sets, and what is loaded when."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coalmine.clients.data.columnar import parquet_rows
from coalmine.clients.data.describe import describe
from coalmine.clients.data.files import FileSource
from coalmine.clients.data.huggingface import HuggingFaceSource
from coalmine.clients.data.load import examine, load
from coalmine.clients.data.rows import Columns, gather
from coalmine.clients.data.sotu import SotuSource
from coalmine.clients.data.splits import SplitSizes, split_users
from coalmine.protocol.errors import DataError

pytestmark = pytest.mark.integration
SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="module")
def addresses():
    return load(SotuSource())


def test_the_addresses_are_237_users_that_suffice_for_a_demo(addresses):
    seen = describe(addresses)
    assert seen.users == 237
    assert 4 <= seen.different_labels <= 8
    assert seen.blank == seen.short == seen.unlabelled == 0
    assert seen.repeated_within < 0.01 * seen.records
    splits = split_users(addresses, SplitSizes(50, 50, 100, 5), 32, 32, 32, seed=0)
    assert all(len(user.records) == 32 for user in (*splits.aux, *splits.calibration, *splits.test, *splits.canaries))


def test_sentences_of_the_addresses_are_whole(addresses):
    records = [text for user in addresses.users for text in user.records]
    ends = sum(text.rstrip("\"'”’)")[-1] in ".?!:;" for text in records)
    assert ends > 0.98 * len(records)
    assert sum(text[0].islower() for text in records) < 0.001 * len(records)
    assert all(text.split()[-1] not in ("Mr.", "Mrs.", "Gen.", "Dr.", "Messrs.") for text in records)


@pytest.fixture
def datasets():
    return pytest.importorskip("datasets")


def saved(datasets, folder, *, labels=("a", "b", None)):
    features = datasets.Features(
        user=datasets.Value("int64"), text=datasets.Value("string"), label=datasets.ClassLabel(names=["a", "b"])
    )
    rows = {"user": [1, 2, 1], "text": ["one", "two", "three"], "label": list(labels)}
    data = datasets.Dataset.from_dict(rows, features=features)
    datasets.DatasetDict(train=data, test=data.select([0])).save_to_disk(str(folder))
    return folder


def test_a_saved_data_set(datasets, tmp_path):
    folder = saved(datasets, tmp_path / "saved")
    table = load(HuggingFaceSource(str(folder)))
    content = [(user.id, user.records, user.labels) for user in table.users]
    assert content == [("1", ("one", "three"), ("a", "")), ("2", ("two",), ("b",))]
    assert len(load(HuggingFaceSource(str(folder / "test")))) == 1, "a single saved split is a data set too"
    assert len(load(HuggingFaceSource(str(folder), split="test"))) == 1
    assert examine(HuggingFaceSource(str(folder))).flaws == ()


def test_a_saved_data_set_without_that_split_or_column(datasets, tmp_path):
    folder = str(saved(datasets, tmp_path / "saved"))
    with pytest.raises(DataError, match="did you mean 'train'"):
        load(HuggingFaceSource(folder, split="trian"))
    with pytest.raises(DataError, match="did you mean 'text'"):
        load(HuggingFaceSource(folder, columns=Columns(text="texts")))
    with pytest.raises(DataError, match="'user' holds int64"):
        load(HuggingFaceSource(folder, columns=Columns(user="text", text="user", label=None)))


def test_bad_records_of_a_data_set_are_named_by_row_or_dropped(datasets, tmp_path):
    data = datasets.Dataset.from_dict({"user": ["u", "u"], "text": ["one", " "]})
    data.save_to_disk(str(tmp_path / "saved"))
    with pytest.raises(DataError, match="row 2 has a missing or blank record"):
        load(HuggingFaceSource(str(tmp_path / "saved")))
    assert load(HuggingFaceSource(str(tmp_path / "saved"), on_bad_record="drop")).dropped == 1


def test_a_folder_that_is_no_data_set(datasets, tmp_path):
    with pytest.raises(DataError, match="cannot be had"):
        load(HuggingFaceSource(str(tmp_path)))


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DataError, match=r"pip install coalmine\[huggingface\]"):
        load(HuggingFaceSource("owner/name"))


def test_a_name_on_the_hub_without_connection_ends_in_one_clear_error(datasets, tmp_path):
    script = (
        "from coalmine.clients.data.load import *\n"
        "from coalmine.protocol.errors import DataError\n"
        "try: load(HuggingFaceSource('nobody/there-is-no-such-data-set'))\n"
        "except DataError as error: print(error)\n"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("nobody/there-is-no-such-data-set: the data set cannot be had")


def test_libraries_are_loaded_only_for_the_source_that_needs_them():
    script = (
        "import sys, coalmine.clients.data.load, coalmine.clients.data.describe, coalmine.clients.data.splits\n"
        "print([name for name in ('pyarrow', 'pandas', 'faker', 'sotu', 'datasets') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.skipif(not (SHARED / "ubuntu_irc.parquet").exists(), reason="ubuntu_irc.parquet is not on this machine")
def test_the_chat_data_suffices_for_the_published_sizes():
    source = FileSource(SHARED / "ubuntu_irc.parquet", Columns(user="user_id"))
    table = load(source)
    seen = describe(table)
    assert (seen.users, seen.records) == (2553, 95344)
    assert seen.users_with_at_least[64] == 335
    splits = split_users(table, SplitSizes(500, 500, 1000, 5), 16, 64, 64, seed=0)
    assert len(splits.test) == 1000
    assert all(len(set(user.records)) == 64 for user in splits.canaries)
    assert gather(parquet_rows(source.path, source.columns, "again"), "again").table.digest == table.digest
