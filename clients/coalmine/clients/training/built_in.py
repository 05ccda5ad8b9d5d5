"""Tables that need no file: real handwritten digits, the same in two colours, and a generated Purchase-like table."""

from __future__ import annotations

import numpy as np

from coalmine.clients.training.table import Table, table
from coalmine.protocol.errors import DataError


def digits() -> Table:
    """scikit-learn's 1797 handwritten digits as (1, 8, 8) images with values in [0, 1], ten classes."""
    from sklearn.datasets import load_digits

    read = load_digits()
    return table(read.images[:, None] / 16.0, read.target, 10, where="digits")


def coloured(images: Table, minority: float, rng: np.random.Generator) -> Table:
    """Even against odd digits in two colours (the set-up of ColoredMNIST; arXiv 2608.28934, appendix B).

    Most even digits are red and most odd ones blue; a share ``minority`` of each class wears the other colour and forms
    group 1. Exactly ``round(minority * class size)`` samples do, chosen at random.

    Args:
        images: (n, 1, h, w) digits with labels 0 to 9.
        minority: in [0, 0.5].

    Returns:
        (n, 2, h, w): channel 0 is red, channel 1 blue; label = parity; group 1 = minority.

    Raises:
        DataError: a share out of its range, or images that are not grey.
    """
    if not 0 <= minority <= 0.5:
        raise DataError(f"{minority!r} is not allowed", where="minority", remedy="needs a share from 0 to 0.5")
    if len(images.shape) != 3 or images.shape[0] != 1:
        raise DataError(f"samples of shape {images.shape}", where="coloured", remedy="needs (1, height, width) images")
    parity = images.y % 2
    group = np.zeros(len(images), np.int64)
    for label in (0, 1):
        members = np.flatnonzero(parity == label)
        group[rng.choice(members, round(minority * len(members)), replace=False)] = 1
    colour = parity ^ group
    x = np.zeros((len(images), 2, *images.shape[1:]), np.float32)
    x[np.arange(len(images)), colour] = images.x[:, 0]
    return table(x, parity, 2, group=group, user=images.user, where="coloured digits")


def purchases(
    n: int, rng: np.random.Generator, *, features: int = 600, classes: int = 100, flip: float = 0.15
) -> Table:
    """A generated table like Purchase100: yes/no features around one prototype per class.

    Each class has a random prototype; a sample is its class's prototype with every bit flipped with probability
    ``flip``. It shares shape and kind with the shopping data, not their contents.

    Raises:
        DataError: a value out of its range.
    """
    if n < 1 or features < 1 or classes < 2 or not 0 <= flip <= 0.5:
        raise DataError(
            f"n={n}, features={features}, classes={classes}, flip={flip}",
            where="purchases",
            remedy="needs n >= 1, features >= 1, classes >= 2, flip in [0, 0.5]",
        )
    prototypes = rng.random((classes, features)) < 0.5
    y = rng.integers(0, classes, n)
    return table(prototypes[y] ^ (rng.random((n, features)) < flip), y, classes, where="purchases")
