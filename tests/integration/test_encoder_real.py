"""The real MiniLM: equal to sentence-transformers, and every bit decided by the text alone."""

import hashlib
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from coalmine.clients.data.load import load
from coalmine.clients.data.sotu import SotuSource
from coalmine.clients.encoder.cache import EmbeddingCache
from coalmine.clients.encoder.cached import CachedEncoder
from coalmine.clients.encoder.sentence import SentenceEncoder, rows_are_independent
from coalmine.protocol.errors import ModelError

pytestmark = pytest.mark.integration
GUARD = Path(__file__).parent / "guard"


@pytest.fixture(scope="module")
def encoder():
    return SentenceEncoder()


@pytest.fixture(scope="module")
def texts():
    """Chat-like, sentences, long, cut at 256 tokens, and the shortest there are."""
    users = load(SotuSource()).users
    sentences = [record for user in users[::60] for record in user.records[:12]]
    chat = [" ".join(sentence.split()[: 2 + n % 9]) for n, sentence in enumerate(sentences)]
    passages = [" ".join(sentences[start : start + 6]) for start in (0, 6)]
    cut = " ".join(sentences[:30])
    return list(dict.fromkeys([*sentences, *chat, *passages, cut, "", "a", "ok", "two words"]))


@pytest.fixture(scope="module")
def expected(encoder, texts):
    return encoder.encode(texts)


def test_equals_sentence_transformers(texts, expected):
    import torch
    from sentence_transformers import SentenceTransformer

    plain = SentenceTransformer(str(SentenceEncoder()._files.folder), device="cpu", local_files_only=True)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        theirs = plain.encode(texts, normalize_embeddings=True, show_progress_bar=False)
    finally:
        torch.set_num_threads(before)
    np.testing.assert_allclose(expected, theirs, rtol=0, atol=1e-6)


def test_unit_vectors_of_the_stated_dimension(encoder, expected):
    assert expected.dtype == np.float32
    assert expected.shape[1] == encoder.dimension == 384
    np.testing.assert_allclose(np.linalg.norm(expected, axis=1), 1, atol=1e-6)


def test_bits_do_not_depend_on_batch_order_neighbours_or_duplicates(encoder, texts, expected):
    rng = np.random.default_rng(3)
    for count in (1, 1, 2, 3, 7, 20, 60):
        picked = rng.integers(0, len(texts), count)
        np.testing.assert_array_equal(encoder.encode([texts[i] for i in picked]), expected[picked])
    for shortest in range(len(texts) - 4, len(texts)):
        np.testing.assert_array_equal(encoder.encode([texts[shortest]]), expected[[shortest]])


def test_bits_do_not_depend_on_the_cache_or_on_chunks(encoder, texts, expected, tmp_path):
    picked = np.random.default_rng(4).permutation(len(texts))[:50]
    wanted, some = [texts[i] for i in picked], [texts[i] for i in picked[::3]]
    cache = EmbeddingCache(tmp_path)
    CachedEncoder(encoder, cache, chunk_cost=500).encode(some)
    half_warm = CachedEncoder(encoder, cache).encode(wanted)
    warm = CachedEncoder(SentenceEncoder(), cache).encode(wanted[::-1])[::-1]
    np.testing.assert_array_equal(half_warm, expected[picked])
    np.testing.assert_array_equal(warm, expected[picked])


def test_another_process_gives_the_same_bits_and_asks_no_network(encoder, texts, expected, tmp_path):
    program = """
import hashlib, json, pickle, sys
encoder = pickle.loads(bytes.fromhex(sys.argv[1]))
texts = json.load(sys.stdin)
print(encoder.id, hashlib.sha256(encoder.encode(texts).tobytes()).hexdigest())
"""
    log = tmp_path / "connections"
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "HF_HUB_OFFLINE")}
    environment |= {"PYTHONPATH": str(GUARD), "COALMINE_SOCKET_LOG": str(log), "HF_HOME": str(tmp_path)}
    some = texts[::4]
    done = subprocess.run(
        [sys.executable, "-c", program, pickle.dumps(encoder).hex()],
        input=json.dumps(some),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [encoder.id, hashlib.sha256(expected[::4].tobytes()).hexdigest()]
    assert not log.exists()


class Leaning:
    """A network in which every row leans on the first row of its batch, as kernels that mix rows would make it."""

    max_length = 256
    dimension = 384

    def __init__(self, network):
        self._network = network

    def __getattr__(self, name):
        return getattr(self._network, name)

    def embed(self, rows):
        return self._network.embed(rows) + np.float32(1e-3 * (int(rows[0]["input_ids"][1:-1].sum()) % 97))


def test_where_rows_lean_on_each_other_texts_are_embedded_one_by_one(encoder, texts, caplog):
    assert rows_are_independent(encoder._network)
    leaning = SentenceEncoder()
    leaning.__dict__["_network"] = Leaning(encoder._network)
    some = texts[:12]
    together = leaning.encode(some)
    assert "one by one" in caplog.text
    np.testing.assert_array_equal(leaning.encode(some[::-1])[::-1], together)
    np.testing.assert_array_equal(np.concatenate([leaning.encode([text]) for text in some]), together)


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_an_embedding_that_is_no_direction_is_refused(encoder, value):
    class Broken(Leaning):
        def embed(self, rows):
            raw = self._network.embed(rows)
            raw[0] = value
            return raw

    broken = SentenceEncoder()
    broken.__dict__ |= {"_network": Broken(encoder._network), "_rows_are_independent": True}
    with pytest.raises(ModelError, match="not finite"):
        broken.encode(["some text", "another text"])


def test_text_that_is_no_unicode_is_refused_without_showing_it(encoder):
    with pytest.raises(ModelError, match="one of the records cannot be tokenised") as caught:
        encoder.encode(["fine", "secret \ud800"], what="records")
    assert "secret" not in str(caught.value)


def test_threads_of_the_caller_are_restored(encoder):
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        encoder.encode(["some text"])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_bfloat16_on_request_stays_close_and_independent(texts, expected):
    half = SentenceEncoder(precision="bf16")
    some = [text for text in texts if len(text) < 60][:12]
    where = [texts.index(text) for text in some]
    rows = half.encode(some)
    assert half.id == SentenceEncoder().id.replace("fp32", "bf16")
    assert 0.99 < np.sum(rows * expected[where], axis=1).min() < 1 - 1e-6
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(half.encode(some[7:8]), rows[7:8])


@pytest.fixture(scope="module")
def small_model(tmp_path_factory, encoder):
    """Another architecture: first-token pooling and a dense head, whose rows may depend on the batch."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer
    from transformers import AutoTokenizer, BertConfig, BertModel

    folder = tmp_path_factory.mktemp("models")
    torch.manual_seed(1)
    BertModel(
        BertConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
    ).save_pretrained(folder / "bert")
    AutoTokenizer.from_pretrained(encoder._files.folder, local_files_only=True).save_pretrained(folder / "bert")
    layers = [Transformer(str(folder / "bert"), max_seq_length=60), Pooling(32, pooling_mode="cls"), Dense(32, 12)]
    SentenceTransformer(modules=layers, device="cpu").save(str(folder / "small"), create_model_card=False)
    return folder / "small"


def test_a_model_in_a_folder(small_model, texts):
    from sentence_transformers import SentenceTransformer

    small = SentenceEncoder(small_model)
    some = texts[:30]
    rows = small.encode(some)
    plain = SentenceTransformer(str(small_model), device="cpu", local_files_only=True)
    theirs = plain.encode(some, normalize_embeddings=True, show_progress_bar=False)
    assert small.dimension == 12
    assert small.id.startswith("small:")
    assert small.id.endswith(":fp32:60")
    np.testing.assert_allclose(rows, theirs, atol=1e-6)
    np.testing.assert_array_equal(small.encode(some[5:6]), rows[5:6])


def test_damaged_weights_are_named(small_model, tmp_path):
    import shutil

    folder = tmp_path / "damaged"
    shutil.copytree(small_model, folder)
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(ModelError, match="cannot be loaded") as caught:
        SentenceEncoder(folder).encode(["a"])
    assert caught.value.where == str(folder)


@pytest.mark.parametrize(("arguments", "message"), [({"precision": "fp8"}, "fp8"), ({"threads": 0}, "0 threads")])
def test_arguments_out_of_range(arguments, message):
    with pytest.raises(ModelError, match=message):
        SentenceEncoder(**arguments)
