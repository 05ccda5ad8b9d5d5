"""Arrays and settings in Flower's records. Part of this room's door to Flower."""

from __future__ import annotations

from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, RecordDict
from numpy.typing import NDArray

from coalmine.protocol.errors import ContributionError


def put_arrays(content: RecordDict, name: str, *values: NDArray[Any]) -> None:
    """Arrays under a name, in order."""
    content[name] = ArrayRecord([np.asarray(value) for value in values])


def put_settings(content: RecordDict, name: str, **values: Any) -> None:
    """Strings, numbers and booleans under a name."""
    content[name] = ConfigRecord(values)


def arrays(content: RecordDict, name: str) -> list[NDArray[Any]]:
    """What :func:`put_arrays` put.

    Raises:
        ContributionError: it is not there.
    """
    found = content.get(name)
    if not isinstance(found, ArrayRecord):
        raise ContributionError(f"the message has no {name!r}", where="message", remedy="use one version everywhere")
    return list(found.to_numpy_ndarrays())


def integers(content: RecordDict, name: str) -> NDArray[np.int64]:
    """One array of integers."""
    return np.asarray(arrays(content, name)[0], np.int64)


def whole_number(record: Any, name: str, default: int | None = None) -> int:
    """One setting.

    Raises:
        ContributionError: it is not there, or no whole number.
    """
    value = record.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ContributionError(f"the message has no {name!r}", where="message", remedy="use one version everywhere")
    return value
