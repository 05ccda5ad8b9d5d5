"""Spreads embedding over worker processes of one thread each; any number of them gives the same bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import ray
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from coalmine.clients.encoder.sentence import SentenceEncoder
from coalmine.deploy.tasks import result

_RESTARTS = 3


class _Worker:
    """Holds one encoder."""

    def __init__(self, model: str | None, precision: Any) -> None:
        threadpool_limits(1)
        self._encoder = SentenceEncoder(model, precision=precision, threads=1)
        self._encoder.encode(["."])

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._encoder.encode(texts)


class EmbeddingWorkers:
    """Worker processes that are started when the first text is missing; an ``EmbedChunks`` for ``CachedEncoder``.

    Args:
        model, precision: of the encoder each worker loads. workers: how many, at least one.
    """

    def __init__(self, model: str | None, precision: Any, workers: int) -> None:
        self._arguments = (model, precision)
        self._count = workers
        self._workers: list[Any] = []

    def __call__(self, chunks: Sequence[Sequence[str]]) -> Iterator[tuple[int, NDArray[np.float32]]]:
        self.start(min(self._count, len(chunks)))
        waiting = iter(enumerate(chunks))
        busy: dict[Any, tuple[int, Any]] = {}

        def give(to: Any) -> None:
            if (job := next(waiting, None)) is not None:
                index, chunk = job
                busy[to.encode.remote(list(chunk))] = (index, to)

        for idle in self._workers:
            give(idle)
        while busy:
            (done,), _ = ray.wait(list(busy), num_returns=1)
            index, idle = busy.pop(done)
            give(idle)
            yield index, result(done)

    def start(self, count: int | None = None) -> None:
        """Start workers up to ``count``, by default all; they load their models in the background."""
        worker = ray.remote(_Worker).options(num_cpus=0, max_restarts=_RESTARTS, max_task_retries=_RESTARTS)
        while len(self._workers) < (count or self._count):
            self._workers.append(worker.remote(*self._arguments))
