"""Opens everything a study works with, and closes it again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from coalmine.deploy.progress import Stages
from coalmine.deploy.study import Study
from coalmine.protocol.ports import Advance

if TYPE_CHECKING:
    from coalmine.deploy.campaign import Workshop

_RECORD_BYTES = 384 * 4
_MIB = 1 << 20


@contextmanager
def open_workshop(study: Study, stages: Stages) -> Iterator[Workshop]:
    """A Ray cluster, encoder workers behind a cache, and the study's generator behind another."""
    from coalmine.clients.encoder.cache import EmbeddingCache
    from coalmine.clients.encoder.cached import CachedEncoder
    from coalmine.clients.encoder.sentence import SentenceEncoder
    from coalmine.deploy.cluster import available_cores, cluster
    from coalmine.deploy.parts import generator

    cache = cache_folder(study)
    workers = study.execution.workers or available_cores()
    encoder = SentenceEncoder(study.encoder.model, precision=study.encoder.precision)
    writer = generator(study, cache)
    with ExitStack() as stack:
        with stages.stage("start workers"):
            stack.enter_context(cluster(workers, object_store_bytes(study)))
            from coalmine.deploy.campaign import Workshop
            from coalmine.deploy.embedding import EmbeddingWorkers

        def progress(what: str, missing: int) -> AbstractContextManager[Advance]:
            return stages.stage(f"embed {what}", missing, "texts")

        embedding = EmbeddingWorkers(study.encoder.model, study.encoder.precision, workers)
        if not (cache / "embeddings").exists():  # all will be missing: load the models while data are read
            embedding.start()
        yield Workshop(
            CachedEncoder(encoder, EmbeddingCache(cache), progress, embed=embedding), writer, stages, workers
        )


def cache_folder(study: Study) -> Path:
    """Where embeddings and generated texts are kept between studies."""
    from coalmine.clients.encoder.folder import default_cache_folder

    return study.execution.cache or default_cache_folder()


def object_store_bytes(study: Study) -> int:
    """Room for the clients' records, a few ballots and the sums in flight, with a margin."""
    records = study.data.test * study.privacy.max_records * _RECORD_BYTES
    ballots = 8 * study.bank.size * (_RECORD_BYTES + 512)
    sums = 8 * 64 * study.bank.size * 8
    return max(256 * _MIB, 2 * (records + ballots + sums))
