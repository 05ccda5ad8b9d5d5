"""Feature classes by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from coalmine.protocol.errors import StudyError, nearest

if TYPE_CHECKING:
    from coalmine.auditor.disclosure.feature_class import FeatureClass
    from coalmine.protocol.ports import Encoder

CLASSES = ("pii", "regurgitation", "semantic")


def feature_classes(names: Sequence[str], encoder: Encoder | None = None) -> list[FeatureClass]:
    """The classes that ship with Coalmine.

    Args:
        names: of ``CLASSES``. encoder: for "semantic"; ``None`` for the packaged one, cached.

    Raises:
        StudyError: an unknown name, a name twice, or none.
        ModelError: a class's library or model is missing.
    """
    unknown = next((name for name in names if name not in CLASSES), None)
    if unknown is not None:
        raise StudyError(f"unknown class {unknown!r}", where="classes", remedy=nearest(unknown, CLASSES))
    if not names or len(set(names)) < len(names):
        raise StudyError("a class is named twice, or none is", where="classes", remedy=f"of {', '.join(CLASSES)}")
    return [_made(name, encoder) for name in names]


def _made(name: str, encoder: Encoder | None) -> FeatureClass:
    match name:
        case "pii":
            from coalmine.auditor.disclosure.pii import Pii

            return Pii()
        case "regurgitation":
            from coalmine.auditor.disclosure.regurgitation import Regurgitation

            return Regurgitation()
        case _:
            from coalmine.auditor.disclosure.semantic import Semantic

            return Semantic(encoder or packaged_encoder())


def packaged_encoder() -> Encoder:
    """The packaged sentence encoder behind the cache of embeddings, which it shares with studies."""
    from coalmine.clients.encoder.cache import EmbeddingCache
    from coalmine.clients.encoder.cached import CachedEncoder
    from coalmine.clients.encoder.folder import default_cache_folder
    from coalmine.clients.encoder.sentence import SentenceEncoder

    return CachedEncoder(SentenceEncoder(), EmbeddingCache(default_cache_folder()))
