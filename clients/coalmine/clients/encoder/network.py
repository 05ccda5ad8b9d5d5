"""The door to sentence-transformers: texts to unpadded token rows, rows of one length to embeddings. Imports torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from transformers.utils import logging as transformers_logging

from coalmine.protocol.errors import ModelError

TokenRow = dict[str, NDArray[np.int64]]
"""The features of one text (``input_ids`` and whatever else the model wants), each (length,), without padding."""

_TOKENISED_AT_ONCE = 1024


class Network:
    """A sentence-transformers model on the CPU.

    Args:
        folder: a local folder; nothing is asked of a hub.
        name: for messages.
        half: bfloat16 instead of float32 weights.

    Raises:
        ModelError: the folder's model cannot be loaded.
    """

    def __init__(self, folder: Path, name: str, *, half: bool = False) -> None:
        try:
            with _quiet():
                model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        except Exception as error:
            raise ModelError(
                f"the encoder cannot be loaded ({type(error).__name__}: {error})",
                where=str(folder),
                remedy="needs a complete sentence-transformers model",
            ) from error
        model.eval()
        self._model = model.to(torch.bfloat16) if half else model
        self._name = name
        self._prompt = model.prompts.get(model.default_prompt_name) if model.default_prompt_name else None
        features = model.preprocess(["canary"], prompt=self._prompt)
        self._per_text = [key for key, value in features.items() if getattr(value, "ndim", 0) == 2]
        self._constant = {key: value for key, value in features.items() if key not in self._per_text}

    @property
    def dimension(self) -> int:
        return int(self._model.get_embedding_dimension() or 0)

    @property
    def max_length(self) -> int:
        return int(self._model.max_seq_length or 0)

    def tokenise(self, texts: Sequence[str], what: str) -> list[TokenRow]:
        """Every text as the model's own preprocessing sees it, cut to its maximum length, padding taken out again.

        Raises:
            ModelError: a text is not valid Unicode.
        """
        rows: list[TokenRow] = [{} for _ in texts]
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        for start in range(0, len(order), _TOKENISED_AT_ONCE):
            part = order[start : start + _TOKENISED_AT_ONCE]
            try:
                features = self._model.preprocess([texts[index] for index in part], prompt=self._prompt)
            except (TypeError, UnicodeError) as error:
                raise ModelError(
                    f"one of the {what} cannot be tokenised", where=self._name, remedy="texts must be valid Unicode"
                ) from error
            columns = {key: features[key].numpy() for key in self._per_text}
            used = columns["attention_mask"].astype(bool)
            for position, index in enumerate(part):
                rows[index] = {key: column[position, used[position]] for key, column in columns.items()}
        return rows

    def embed(self, rows: Sequence[TokenRow]) -> NDArray[np.float32]:
        """(b, d) embeddings of rows of one length, as the model gives them."""
        features: dict[str, Any] = {
            key: torch.from_numpy(np.stack([row[key] for row in rows])) for key in self._per_text
        }
        with torch.inference_mode():
            embedded: torch.Tensor = self._model({**features, **self._constant})["sentence_embedding"]
        return np.asarray(embedded.float().numpy(), dtype=np.float32)

    def probe_rows(self, count: int, length: int) -> list[TokenRow]:
        """``count`` different rows of made-up tokens, to look at the network's arithmetic."""
        vocabulary = len(self._model.tokenizer)
        numbers = np.arange(count * length, dtype=np.int64).reshape(count, length)
        constant = {key: np.zeros(length, dtype=np.int64) for key in self._per_text}
        mask = np.ones(length, dtype=np.int64)
        ids = (numbers * 7919 + 1013) % vocabulary
        return [{**constant, "attention_mask": mask, "input_ids": row} for row in ids]


@contextmanager
def threads(count: int) -> Iterator[None]:
    """torch computes with ``count`` threads inside."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bar for reading weights: it belongs to the command line."""
    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]
