"""Fixed transforms of images. Their constants are public: never means or scales of private data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coalmine.clients.training.table import Table
from coalmine.protocol.errors import DataError


def as_images(data: Table, scale: float = 255.0) -> Table:
    """(n, h, w) grey values in [0, scale] as (n, 1, h, w) in [0, 1]; (n, c, h, w) keep their channels.

    Raises:
        DataError: samples that are no images, a scale that float32 cannot hold or divide by.
    """
    if len(data.shape) not in (2, 3):
        raise DataError(f"samples of shape {data.shape}", where="images", remedy="needs (h, w) or (c, h, w)")
    x = data.x[:, None] if len(data.shape) == 2 else data.x
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        divisor = np.float32(scale)
        scaled = (x / divisor).astype(np.float32)
    if not (0 < divisor < np.inf and np.isfinite(scaled).all()):
        raise DataError(f"a scale of {scale!r}", where="images", remedy="needs the largest value of the images, > 0")
    return replace(data, x=scaled)


def average_pooled(data: Table, size: int) -> Table:
    """(n, c, h, w) to (n, c, h/size, w/size) by averages of squares.

    Raises:
        DataError: sides that ``size`` does not divide.
    """
    c, h, w = data.shape if len(data.shape) == 3 else (0, 0, 0)
    if c == 0 or size < 1 or h % size or w % size:
        raise DataError(
            f"samples of shape {data.shape} cannot be pooled by {size}",
            where="images",
            remedy="needs (c, h, w) images whose sides it divides",
        )
    squares = data.x.reshape(len(data), c, h // size, size, w // size, size)
    return replace(data, x=squares.mean(axis=(3, 5), dtype=np.float32))


def standardised(data: Table, mean: float, std: float) -> Table:
    """``(x - mean) / std`` with public constants, for instance of public images.

    Raises:
        DataError: a scale that is not > 0.
    """
    if not std > 0:
        raise DataError(f"a scale of {std!r}", where="images", remedy="needs a number > 0")
    return replace(data, x=((data.x - np.float32(mean)) / np.float32(std)).astype(np.float32))
