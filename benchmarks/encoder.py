"""The encoder against plain sentence-transformers, one thread each, on sentences of presidential addresses."""

from __future__ import annotations

import os

import numpy as np

from benchmarks.measurement import Measurement, seconds
from coalmine.clients.data.sotu import SotuSource, read_sotu
from coalmine.clients.encoder.model_files import locate
from coalmine.clients.encoder.sentence import SentenceEncoder

TEXTS = 600


def measure() -> list[Measurement]:
    """Both get the same texts in the same order."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    from sentence_transformers import SentenceTransformer

    users = read_sotu(SotuSource()).users
    texts = (
        [user.records[0] for user in users] + [user.records[1] for user in users] + [user.records[2] for user in users]
    )
    texts = texts[:TEXTS]
    encoder = SentenceEncoder()
    torch.set_num_threads(1)
    plain = SentenceTransformer(str(locate(None).folder), device="cpu")
    difference = float(np.abs(encoder.encode(texts) - plain.encode(texts, normalize_embeddings=True)).max())
    ours = seconds(lambda: encoder.encode(texts), 2)
    theirs = seconds(lambda: plain.encode(texts, normalize_embeddings=True, show_progress_bar=False), 2)
    return [
        Measurement("encoder, bits independent of neighbours", TEXTS / ours, "texts/s"),
        Measurement("plain sentence-transformers", TEXTS / theirs, "texts/s"),
        Measurement("speed relative to plain", theirs / ours, "x"),
        Measurement("largest difference of a coordinate", difference, ""),
    ]
