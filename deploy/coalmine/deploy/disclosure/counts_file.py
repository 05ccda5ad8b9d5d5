"""Counts per user from a file, for the calculator."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.errors import DataError

_REMEDY = "needs whole numbers >= 0: a JSON list, a JSON object with the key d, numbers in a text, or .npy"


def read_counts(path: Path) -> NDArray[np.int64]:
    """(n,) whole numbers >= 0.

    Raises:
        DataError: no such file, or something else in it.
    """
    try:
        values = np.load(path, allow_pickle=False) if path.suffix == ".npy" else np.array(_numbers(path.read_text()))
    except FileNotFoundError:
        raise DataError("there is no such file", where=str(path), remedy=_REMEDY) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or 'damaged'}", where=str(path), remedy=_REMEDY) from None
    except (ValueError, OverflowError, TypeError):
        raise DataError("these are not counts", where=str(path), remedy=_REMEDY) from None
    if values.ndim != 1 or not len(values) or values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise DataError("these are not counts", where=str(path), remedy=_REMEDY)
    if (values < 0).any() or (values != np.floor(values)).any() or values.max() > 2**40:
        raise DataError("a count is negative, not whole, or beyond all measure", where=str(path), remedy=_REMEDY)
    return values.astype(np.int64)


def _numbers(text: str) -> list[object]:
    """A JSON list, the list ``d`` of a JSON object, or numbers between commas and white space."""
    if text.lstrip().startswith(("[", "{")):
        value = json.loads(text)
        value = value.get("d") if isinstance(value, dict) else value
        if not isinstance(value, list):
            raise ValueError
        return value
    return [float(word) for word in text.replace(",", " ").split()]
