from __future__ import annotations

import multiprocessing
import sqlite3
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from coalmine.protocol.errors import StorageError
from coalmine.server.generate.cache import CachedGenerator
from coalmine.server.generate.fake import FakeGenerator
from coalmine.server.generate.items import Item
from coalmine.server.generate.rules import RulesGenerator


def test_only_what_is_missing_is_generated(tmp_path: Path) -> None:
    inner = FakeGenerator()
    cached = CachedGenerator(inner, tmp_path)
    first = cached.sample(["a", "b"], 1)
    again = CachedGenerator(inner, tmp_path).sample(["b", "a", "a", "c"], 1)
    assert again[:2] == [first[1], first[0]]
    assert [(item.prompt[0], item.turn) for item in inner.asked] == [("a", 0), ("b", 0), ("a", 1), ("c", 0)]
    assert FakeGenerator().sample(["b", "a", "a", "c"], 1) == again


def test_operation_seed_and_generator_are_part_of_the_request(tmp_path: Path) -> None:
    inner = FakeGenerator()
    cached = CachedGenerator(inner, tmp_path)
    cached.sample(["a"], 1)
    cached.sample(["a"], 2)
    cached.paraphrase(["a"], 1)
    cached.vary([["a"]], 1)
    cached.vary([["a", "b"]], 1)
    cached.vary([["ab"]], 1)
    assert len(inner.asked) == 6
    assert CachedGenerator(RulesGenerator(), tmp_path).sample(["a"], 1) == RulesGenerator().sample(["a"], 1)


class _Interrupted(FakeGenerator):
    def write(self, items: Sequence[Item]) -> Iterator[Mapping[int, str]]:
        for count, group in enumerate(super().write(items)):
            if count == 3:
                raise KeyboardInterrupt
            yield group


def test_finished_groups_survive_an_interruption(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        CachedGenerator(_Interrupted(), tmp_path).sample(list("abcde"), 0)
    inner = FakeGenerator()
    assert CachedGenerator(inner, tmp_path).sample(list("abcde"), 0) == FakeGenerator().sample(list("abcde"), 0)
    assert [item.prompt[0] for item in inner.asked] == ["d", "e"]


def test_the_file_is_the_owners_and_holds_no_prompt(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    CachedGenerator(RulesGenerator(), folder).paraphrase(["xylophone quartz"] * 3, 0)
    names = {path.name for path in folder.iterdir()}
    assert "texts.sqlite" in names
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in folder.iterdir())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    CachedGenerator(FakeGenerator(barren=frozenset({"xylophone"})), folder).sample(["xylophone"], 0)
    with sqlite3.connect(folder / "texts.sqlite") as database:
        rows = database.execute("SELECT request, text FROM texts").fetchall()
    database.close()
    assert len(rows) == 4
    assert all(len(request) == 32 for request, _ in rows)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "texts.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(StorageError, match=r"texts\.sqlite.*not a database"):
        CachedGenerator(RulesGenerator(), tmp_path).sample(["a"], 0)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file"):
        CachedGenerator(RulesGenerator(), tmp_path / "file").sample(["a"], 0)


def _fill(folder: Path, seed: int) -> None:
    CachedGenerator(RulesGenerator(), folder).sample(["x"] * 200, seed)


def test_several_processes_share_a_cache(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_fill, args=(tmp_path, seed)) for seed in (0, 0, 1)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert CachedGenerator(RulesGenerator(), tmp_path).sample(["x"] * 200, 1) == RulesGenerator().sample(["x"] * 200, 1)
    with sqlite3.connect(tmp_path / "texts.sqlite") as database:
        assert database.execute("SELECT count(*) FROM texts").fetchone() == (400,)
    database.close()
