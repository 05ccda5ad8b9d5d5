"""Downstream accuracy: a classifier of embeddings learns from one set of texts and is tested on real ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.errors import DataError

_ITERATIONS = 5000


@dataclass(frozen=True)
class Labelled:
    """Embedded texts with their labels.

    Attributes:
        features: (n, d). labels: n of them.

    Raises:
        DataError: no text, another number of labels than texts, or a feature that is not finite.
    """

    features: NDArray[np.floating]
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or len(self.features) != len(self.labels) or not len(self.labels):
            raise DataError(
                f"features of shape {self.features.shape} for {len(self.labels)} labels",
                where="utility",
                remedy="one label for each text, and at least one text",
            )
        if not np.isfinite(self.features).all():
            raise DataError("a feature is not a finite number", where="utility", remedy="embed the texts again")

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: NDArray[np.integer]) -> Labelled:
        """Some of the texts, in the order of ``rows``."""
        return Labelled(self.features[rows], tuple(self.labels[row] for row in rows))


def accuracy(training: Labelled, test: Labelled) -> float:
    """Share of the test texts whose label a logistic regression on the training texts predicts.

    A training set with a single label predicts that label.
    """
    if len(set(training.labels)) == 1:
        return _share(test.labels, training.labels[:1] * len(test))
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        model = LogisticRegression(max_iter=_ITERATIONS).fit(training.features, training.labels)
        return _share(test.labels, [str(label) for label in model.predict(test.features)])


def majority_accuracy(training: Labelled, test: Labelled) -> float:
    """Share of the test texts that have the training texts' most frequent label; ties to the first in order."""
    counts = Counter(training.labels)
    most = min(counts, key=lambda label: (-counts[label], label))
    return _share(test.labels, [most] * len(test))


def _share(truth: Sequence[str], predicted: Sequence[str]) -> float:
    return float(np.mean([one == other for one, other in zip(truth, predicted, strict=True)]))
