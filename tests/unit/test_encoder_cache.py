"""The disk cache: exact, private, shared by processes, honest about damage."""

import os
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from coalmine.clients.encoder.cache import EmbeddingCache, text_key
from coalmine.clients.encoder.fake import HashEncoder
from coalmine.clients.encoder.folder import default_cache_folder
from coalmine.protocol.errors import ModelError, StorageError

ENCODER = HashEncoder(16)


def keys_of(texts):
    return [text_key(text) for text in texts]


def texts_of(numbers):
    return [f"text {number}" for number in numbers]


@pytest.fixture
def cache(tmp_path):
    return EmbeddingCache(tmp_path / "cache")


@pytest.fixture
def filled(cache):
    shelf = cache.shelf(ENCODER)
    shelf.put(keys_of(texts_of(range(300))), ENCODER.encode(texts_of(range(300))))
    return shelf


def test_gives_back_the_same_bits_for_what_it_knows(cache):
    shelf = cache.shelf(ENCODER)
    positions, vectors = shelf.get(keys_of(["a"]))
    assert positions.shape == (0,)
    assert vectors.shape == (0, 16)
    stored = ENCODER.encode(texts_of(range(2500)))
    shelf.put(keys_of(texts_of(range(2500))), stored)
    asked = texts_of(range(3000))[::-1]
    positions, vectors = cache.shelf(ENCODER).get(keys_of(asked))
    np.testing.assert_array_equal(positions, np.arange(500, 3000))
    np.testing.assert_array_equal(vectors, stored[::-1])
    assert vectors.dtype == np.float32


def test_the_first_vector_of_a_key_stays(filled):
    filled.put(keys_of(["text 1"]), ENCODER.encode(["something else"]))
    np.testing.assert_array_equal(filled.get(keys_of(["text 1"]))[1], ENCODER.encode(["text 1"]))


def test_two_encoders_have_two_files(cache):
    assert cache.shelf(HashEncoder(16)).path != cache.shelf(HashEncoder(32)).path


def test_another_dimension_is_refused_naming_both(filled):
    wider = type(filled)(filled.path, filled.encoder, 24)
    for use in (lambda: wider.get(keys_of(["a"])), lambda: wider.put(keys_of(["a"]), np.zeros((1, 24), np.float32))):
        with pytest.raises(ModelError, match=r"dimension 16.* 24"):
            use()


def test_vectors_of_a_wrong_shape_are_refused(filled):
    with pytest.raises(ModelError, match=r"\(1, 16\)"):
        filled.put(keys_of(["a"]), np.zeros((1, 15), np.float32))


def test_only_the_owner_may_look(tmp_path):
    before = os.umask(0)
    try:
        cache = EmbeddingCache(tmp_path / "cache")
        shelf = cache.shelf(ENCODER)
        shelf.put(keys_of(["a"]), ENCODER.encode(["a"]))
        # While a connection is open, the write-ahead log and its index lie beside the file.
        with sqlite3.connect(shelf.path) as connection:
            connection.execute("INSERT INTO vectors VALUES (x'00', x'00', 0)")
            connection.commit()
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in shelf.path.parent.iterdir()}
        connection.close()
    finally:
        os.umask(before)
    assert len(modes) == 3
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(shelf.path.parent.stat().st_mode) == 0o700


def test_a_folder_open_to_others_is_closed(tmp_path):
    (tmp_path / "embeddings").mkdir(mode=0o755)
    folder = EmbeddingCache(tmp_path).shelf(ENCODER).path.parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_text_is_never_stored(cache):
    secret = "a sentence that nobody may find on the disk"
    shelf = cache.shelf(ENCODER)
    shelf.put(keys_of([secret]), ENCODER.encode([secret]))
    stored = [path.read_bytes() for path in cache.folder.rglob("*") if path.is_file()]
    assert stored
    assert not any(b"sentence" in data or b"nobody" in data for data in stored)


def test_damage_names_the_file_and_what_to_do(filled):
    whole = filled.path.read_bytes()
    vector = ENCODER.encode(["text 7"]).tobytes()
    assert vector in whole
    flipped = bytes([vector[0] ^ 1]) + vector[1:]
    damaged = {
        "no database": b"this is not a database" * 100,
        "empty": b"",
        "cut": whole[: len(whole) // 2],
        "header kept, pages gone": whole[:100] + b"\xff" * (len(whole) - 100),
        "one bit of a vector": whole.replace(vector, flipped),
    }
    for kind, content in damaged.items():
        filled.path.write_bytes(content)
        with pytest.raises(StorageError) as caught:
            filled.get(keys_of(texts_of(range(300))))
        assert caught.value.where == str(filled.path), kind
        assert "remove this file" in caught.value.remedy, kind
    filled.path.unlink()
    filled.put(keys_of(["text 7"]), ENCODER.encode(["text 7"]))
    np.testing.assert_array_equal(filled.get(keys_of(["text 7"]))[1], ENCODER.encode(["text 7"]))


def test_a_path_that_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="COALMINE_CACHE"):
        EmbeddingCache(tmp_path / "file").shelf(ENCODER)


def test_the_environment_chooses_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("COALMINE_CACHE", str(tmp_path / "elsewhere"))
    assert default_cache_folder() == tmp_path / "elsewhere"
    monkeypatch.setenv("COALMINE_CACHE", "")
    assert "coalmine" in default_cache_folder().parts


PROGRAM = """
import sys
from pathlib import Path
from coalmine.clients.encoder.cache import EmbeddingCache, text_key
from coalmine.clients.encoder.folder import default_cache_folder
from coalmine.clients.encoder.fake import HashEncoder
from coalmine.protocol.errors import StorageError
encoder = HashEncoder(16)
def put(shelf, numbers):
    texts = [f"text {n}" for n in numbers]
    shelf.put([text_key(text) for text in texts], encoder.encode(texts))
cache = EmbeddingCache(Path(sys.argv[1]))
"""


def python(program, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM + program, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def outcome(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err.decode()
    return out.decode()


def test_several_processes_write_at_once(tmp_path):
    program = """
first = int(sys.argv[2])
for start in range(first, first + 400, 10):
    put(cache.shelf(encoder), range(start, start + 20))
"""
    for process in [python(program, tmp_path, first) for first in (0, 100, 200, 300)]:
        outcome(process)
    shelf = EmbeddingCache(tmp_path).shelf(ENCODER)
    texts = texts_of(range(710))
    positions, vectors = shelf.get(keys_of(texts))
    assert len(positions) == 710
    np.testing.assert_array_equal(vectors, ENCODER.encode(texts))
    assert [path.suffix for path in shelf.path.parent.iterdir() if path.name.startswith(".new-")] == []


def test_a_writer_killed_at_any_moment_leaves_whole_chunks(tmp_path):
    program = """
start = 0
while True:
    put(cache.shelf(encoder), range(start, start + 50))
    start += 50
"""
    shelf = EmbeddingCache(tmp_path).shelf(ENCODER)
    process = python(program, tmp_path)
    deadline = time.monotonic() + 60
    while len(shelf.get(keys_of(texts_of(range(200))))[0]) < 200 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    texts = texts_of(range(100_000))
    positions, vectors = shelf.get(keys_of(texts))
    assert len(positions) >= 200
    assert len(positions) % 50 == 0
    np.testing.assert_array_equal(vectors, ENCODER.encode([texts[i] for i in positions]))
    shelf.put(keys_of(["one more"]), ENCODER.encode(["one more"]))


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX limits")
def test_a_full_disk_is_told_and_does_no_harm(tmp_path):
    program = """
import resource
put(cache.shelf(encoder), range(10))
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    put(cache.shelf(encoder), range(10, 20_000))
except StorageError as error:
    print(error)
"""
    told = outcome(python(program, tmp_path))
    assert "disk space" in told
    positions, _ = EmbeddingCache(tmp_path).shelf(ENCODER).get(keys_of(texts_of(range(20_000))))
    np.testing.assert_array_equal(positions, np.arange(10))


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX permissions")
def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    # The superuser may write anywhere, so the program gives that right up first.
    program = """
import os
os.chdir(sys.argv[1])
Path("embeddings").mkdir()
Path("embeddings").chmod(0o500)
if os.geteuid() == 0:
    os.chown("embeddings", 65534, 65534)
    os.seteuid(65534)
try:
    put(EmbeddingCache(Path(".")).shelf(encoder), range(10))
except StorageError as error:
    print(error)
"""
    told = outcome(python(program, tmp_path))
    assert "COALMINE_CACHE" in told
    assert list(Path(tmp_path, "embeddings").iterdir()) == []
