"""MAUVE of two sets of embedded texts (Pillutla et al. 2021): how alike two text distributions are, in [0, 1].

The library quantises both sets together and measures the area under a divergence curve. Its value depends on the number
of buckets and of texts: values compare only where both are the same. Importing it takes seconds, so it is done late.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.errors import DataError, StudyError

TEXTS_PER_BUCKET = 10
_ALONE = threading.Lock()


def mauve_score(one: NDArray[np.floating], other: NDArray[np.floating], buckets: int, seed: int) -> float:
    """MAUVE of two sets of features. The same on any number of cores.

    Args:
        one, other: (n, d) and (m, d), finite. buckets: >= 2, no more than either set has texts. seed: of the quantiser.

    Raises:
        DataError: shapes that differ, too few texts, or a feature that is not finite.
        StudyError: the library is not installed.
    """
    if one.ndim != 2 or other.ndim != 2 or one.shape[1] != other.shape[1]:
        raise DataError(f"features have shapes {one.shape} and {other.shape}", where="MAUVE", remedy="embed both alike")
    if not 2 <= buckets <= min(len(one), len(other)):
        raise DataError(
            f"{buckets} buckets for {len(one)} and {len(other)} texts",
            where="MAUVE",
            remedy="at least 2 buckets, and no more than there are texts on either side",
        )
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        raise DataError("a feature is not a finite number", where="MAUVE", remedy="embed the texts again")
    try:
        import mauve
    except ImportError as error:
        raise StudyError(
            "MAUVE is not installed", where="utility.measure", remedy="run `pip install 'coalmine[utility]'`"
        ) from error
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), _quietly():
        found: Any = mauve.compute_mauve(p_features=one, q_features=other, num_buckets=buckets, seed=seed)
    return float(found.mauve)


@contextmanager
def _quietly() -> Iterator[None]:
    """faiss writes to the terminal how many more points it would like, unless it is told that few will do. The
    number has no other effect."""
    import faiss

    with _ALONE, patch.object(faiss, "Kmeans", partial(faiss.Kmeans, min_points_per_centroid=1)):
        yield
