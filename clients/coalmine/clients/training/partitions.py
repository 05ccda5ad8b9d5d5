"""Who holds which samples. A client may hold none; each sample has exactly one holder."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coalmine.clients.training.table import Table
from coalmine.protocol.errors import DataError

Parts = list[NDArray[np.int64]]
"""The row numbers of each client, ascending."""


def by_user(data: Table) -> Parts:
    """One client per user, in the order of user numbers.

    Raises:
        DataError: the data name no users.
    """
    if data.user is None:
        raise DataError("these data name no users", where="partition", remedy="use iid, dirichlet or class")
    users = np.unique(data.user)
    return [np.flatnonzero(data.user == user).astype(np.int64) for user in users]


def iid(data: Table, clients: int, rng: np.random.Generator) -> Parts:
    """Random parts of nearly equal size; empty ones where there are more clients than samples."""
    _require_clients(clients)
    return [np.sort(part).astype(np.int64) for part in np.array_split(rng.permutation(len(data)), clients)]


def dirichlet(data: Table, clients: int, alpha: float, rng: np.random.Generator, *, allow_empty: bool = False) -> Parts:
    """Each class is shared out in proportions drawn from Dirichlet(alpha, ..., alpha): skewed for small alpha.

    Raises:
        DataError: a value out of its range; clients that end up with nothing, unless ``allow_empty``.
    """
    _require_clients(clients)
    if not alpha > 0:
        raise DataError(f"{alpha!r} is not allowed", where="partition.alpha", remedy="needs a number > 0")
    holder = np.zeros(len(data), np.int64)
    for label in range(data.classes):
        members = rng.permutation(np.flatnonzero(data.y == label))
        # Gamma draws in logarithms: for a tiny alpha every one of them underflows, and with them their sum.
        logs = np.log(rng.gamma(alpha + 1, size=clients)) + np.log1p(-rng.random(clients)) / alpha
        shares = np.exp(logs - logs.max())
        borders = np.round(np.cumsum(shares / shares.sum()) * len(members)).astype(np.int64)
        holder[members] = np.searchsorted(borders, np.arange(len(members)), side="right").clip(max=clients - 1)
    parts = [np.flatnonzero(holder == client).astype(np.int64) for client in range(clients)]
    empty = sum(len(part) == 0 for part in parts)
    if empty and not allow_empty:
        raise DataError(
            f"{empty} of {clients} clients would hold no sample",
            where="partition",
            remedy="raise alpha, use fewer clients, or allow empty ones",
        )
    return parts


def by_class(data: Table, clients: int, classes_each: int, rng: np.random.Generator) -> Parts:
    """Each client holds samples of ``classes_each`` classes only; every class is shared equally among its holders.

    Raises:
        DataError: a value out of its range, or a class that nobody would hold.
    """
    _require_clients(clients)
    if not 1 <= classes_each <= data.classes:
        raise DataError(
            f"{classes_each} classes each", where="partition.classes", remedy=f"needs 1 to {data.classes} classes"
        )
    if clients * classes_each < data.classes:
        raise DataError(
            f"{clients} clients with {classes_each} classes each cannot hold all {data.classes} classes",
            where="partition",
            remedy="use more clients or more classes each",
        )
    order = rng.permutation(data.classes)
    holds = [
        [order[(client * classes_each + i) % data.classes] for i in range(classes_each)] for client in range(clients)
    ]
    holder = np.zeros(len(data), np.int64)
    for label in range(data.classes):
        members = rng.permutation(np.flatnonzero(data.y == label))
        holders = [client for client in range(clients) if label in holds[client]]
        for client, part in zip(holders, np.array_split(members, len(holders)), strict=True):
            holder[part] = client
    return [np.flatnonzero(holder == client).astype(np.int64) for client in range(clients)]


def _require_clients(clients: int) -> None:
    if clients < 1:
        raise DataError(f"{clients} clients", where="partition.clients", remedy="needs at least one")
