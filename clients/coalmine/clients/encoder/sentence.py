"""The real encoder: sentence-transformers, driven so that an embedding depends on its text alone, bit for bit.

Found by experiment (MiniLM-L6 fp32, torch 2.13, AVX2): padding a text changes its bits (its attention sums run over
more places). Without padding, rows of one token length keep their bits at any batch size, position and beside any
neighbours, except in matrix products of up to 5 rows, where other kernels run (one text of 2 or 3 tokens; of 5 on two
threads). Hence batches of exactly one token length, never padded, filled up to 64 tokens with copies: no fixed shapes.
Each load checks this on the machine at hand; where it does not hold (a dense head's products have one row per text),
texts are embedded one by one.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import logging
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from coalmine.clients.encoder.batches import least_rows, plan_batches
from coalmine.clients.encoder.model_files import locate
from coalmine.protocol.errors import ModelError

if TYPE_CHECKING:
    from coalmine.clients.encoder.network import Network

_log = logging.getLogger(__name__)

Precision = Literal["fp32", "bf16"]

_PROBED_LENGTHS = (2, 3, 7, 19, 45, 140)
"""Tokens of the texts on which independence is checked, about 1,000 tokens in all."""


class SentenceEncoder:
    """A sentence-transformers model on the CPU. Its files give `id` and `dimension`; it is loaded with the first text.

    Args:
        model: ``None`` for the packaged MiniLM, a local folder, or a name on a hub (asked only then).
        precision: "fp32", or "bf16" for bfloat16 weights: faster only where the processor computes bfloat16.
        threads: of torch while encoding, >= 1; restored afterwards.

    Raises:
        ModelError: no such model, or an argument out of its range.
    """

    def __init__(self, model: str | Path | None = None, precision: Precision = "fp32", threads: int = 1) -> None:
        if precision not in get_args(Precision):
            raise ModelError(f"unknown precision {precision!r}", where="encoder", remedy="fp32 or bf16")
        if threads < 1:
            raise ModelError(f"{threads} threads are not possible", where="encoder", remedy="at least 1")
        self._arguments = (model, precision, threads)
        self._precision = precision
        self._threads = threads
        self._files = locate(model)

    def __reduce__(self) -> tuple[object, ...]:
        """Another process loads the model itself."""
        return SentenceEncoder, self._arguments

    @functools.cached_property
    def id(self) -> str:
        """name:digest:precision:max sequence length; the digest covers weights, tokenizer and settings."""
        length = self._files.max_length() or self._network.max_length
        return f"{self._files.name}:{self._files.digest()[:16]}:{self._precision}:{length}"

    @functools.cached_property
    def dimension(self) -> int:
        return self._files.dimension() or self._network.dimension

    @functools.cached_property
    def machine(self) -> str:
        """What the bits depend on besides `id`: processor, library versions and threads."""
        libraries = ("torch", "transformers", "sentence-transformers", "tokenizers")
        versions = (f"{name} {importlib.metadata.version(name)}" for name in libraries)
        return ", ".join((_processor(), *versions, f"threads {self._threads}"))

    def encode(self, texts: Sequence[str], *, what: str = "texts") -> NDArray[np.float32]:
        """(n, d) unit vectors; see `coalmine.protocol.ports.Encoder`.

        Raises:
            ModelError: the model cannot be loaded, a text is not valid Unicode, or an embedding is not finite.
        """
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        if not len(texts):
            return vectors
        from coalmine.clients.encoder.network import threads

        network, alone = self._network, not self._rows_are_independent
        with threads(self._threads):
            tokens = network.tokenise(texts, what)
            for batch in plan_batches([len(row["input_ids"]) for row in tokens], alone=alone):
                raw = network.embed([tokens[row] for row in batch.rows])[: batch.kept]
                vectors[batch.rows[: batch.kept]] = self._unit(raw, what)
        return vectors

    @functools.cached_property
    def _network(self) -> Network:
        from coalmine.clients.encoder.network import Network

        network = Network(self._files.folder, self._files.name, half=self._precision == "bf16")
        declared = self._files.dimension()
        if declared not in (None, network.dimension):
            raise ModelError(
                f"the model gives dimension {network.dimension}, its settings say {declared}",
                where=str(self._files.folder),
                remedy="mend the pooling settings",
            )
        return network

    @functools.cached_property
    def _rows_are_independent(self) -> bool:
        from coalmine.clients.encoder.network import threads

        with threads(self._threads):
            independent = rows_are_independent(self._network)
        if not independent:
            _log.warning(
                "here this model's embeddings change with their batch: texts are embedded one by one, which is slower"
            )
        return independent

    def _unit(self, raw: NDArray[np.float32], what: str) -> NDArray[np.float32]:
        """L2-normalised in float64, each row by itself."""
        wide = raw.astype(np.float64)
        norms = np.sqrt(np.sum(wide * wide, axis=1, keepdims=True))
        if not (np.isfinite(norms).all() and norms.all()):
            raise ModelError(
                f"an embedding of the {what} is not finite, or zero", where=self.id, remedy="check the model's weights"
            )
        unit: NDArray[np.float32] = (wide / norms).astype(np.float32)
        return unit


def rows_are_independent(network: Network) -> bool:
    """Whether rows of the smallest batches keep their bits beside another neighbour and at other positions."""
    for length in _PROBED_LENGTHS:
        tokens = min(length, network.max_length or length)
        few = least_rows(tokens)
        rows = network.probe_rows(few + 1 + few // 8, tokens)
        if not np.array_equal(network.embed(rows[:few]), network.embed(rows[::-1])[::-1][:few]):
            return False
    return True


@functools.cache
def _processor() -> str:
    """Model and abilities of the processor, in short."""
    told = [platform.machine(), platform.processor()]
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n", 1)[0]
    except OSError:
        first = ""
    told += [line for line in first.splitlines() if line.startswith(("cpu family", "model", "flags"))]
    digest = hashlib.sha256("\n".join(told).encode()).hexdigest()
    return f"processor {digest[:16]}"
