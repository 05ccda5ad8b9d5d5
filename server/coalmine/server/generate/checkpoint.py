"""SmolLM2's GGUF file turned, once, into a checkpoint that loads in a second."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coalmine.protocol.errors import ModelError, StorageError
from coalmine.server.generate.models import SMOLLM2_SHA256, sha256, smollm2_weights

_WEIGHTS = "model.safetensors"
_SEAL = "weights.sha256"


def smollm2_checkpoint(cache: Path) -> Path:
    """The folder of the converted checkpoint (bfloat16, 270 MB), converted now if it is not there or not whole.

    It appears under its name only when finished; two processes that convert at once both succeed.

    Raises:
        ModelError: the weights or a library to read them are missing, or the weights are not the expected ones.
        StorageError: the folder cannot be written.
    """
    final = cache / f"smollm2-{SMOLLM2_SHA256[:12]}"
    if _whole(final):
        return final
    source = smollm2_weights()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".smollm2-", dir=cache))
        try:
            _convert(source, draft)
            (draft / _SEAL).write_text(sha256(draft / _WEIGHTS))
            _publish(draft, final)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise StorageError(
            f"the converted SmolLM2 cannot be kept ({error})",
            where=str(cache),
            remedy="270 MB are needed there, and permission to write",
        ) from error
    return final


@contextmanager
def without_bars() -> Iterator[None]:
    """transformers' own progress bars are off inside, and as they were before afterwards."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _whole(folder: Path) -> bool:
    seal, weights = folder / _SEAL, folder / _WEIGHTS
    return seal.is_file() and weights.is_file() and sha256(weights) == seal.read_text()


def _publish(draft: Path, final: Path) -> None:
    """Rename; a checkpoint that another process finished meanwhile is as good, a damaged one makes room."""
    if final.exists() and not _whole(final):
        shutil.rmtree(final)
    try:
        draft.rename(final)
    except OSError:
        if not _whole(final):
            raise


def _convert(source: Path, folder: Path) -> None:
    try:
        import accelerate  # noqa: F401 - transformers needs both to read GGUF
        import gguf  # noqa: F401
    except ImportError as error:
        raise ModelError(
            f"reading SmolLM2's weights needs the package {error.name}",
            where="generator smollm2",
            remedy="run `coalmine models add smollm2`",
        ) from error
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with warnings.catch_warnings(), without_bars():
        warnings.simplefilter("ignore")  # the reader warns about read-only arrays; nothing here writes to them
        tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name, local_files_only=True)
        model = AutoModelForCausalLM.from_pretrained(
            source.parent, gguf_file=source.name, dtype=torch.float32, local_files_only=True
        )
        config = model.config
        if hasattr(config, "quantization_config"):
            # Without it the weights count as plain ones, which they are by now.
            del config.quantization_config
        plain = type(model)(config)
        plain.load_state_dict(model.state_dict())
        plain.bfloat16().save_pretrained(folder)
        tokenizer.save_pretrained(folder)
