"""Messages between the server and its clients. With ``app`` and the strategies this room's door to Flower."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid
from numpy.typing import NDArray

from coalmine.protocol.dpsgd import wire
from coalmine.protocol.errors import ContributionError

Answers = dict[int, RecordDict]
"""Contents by node."""


def content(arrays: Mapping[str, Sequence[NDArray[Any]]], **order: int) -> RecordDict:
    """Arrays by name, and an order."""
    made = RecordDict({wire.ORDER: ConfigRecord({**order})})
    for name, values in arrays.items():
        made[name] = ArrayRecord([np.asarray(value) for value in values])
    return made


def arrays(answer: RecordDict, name: str) -> list[NDArray[Any]]:
    """Arrays of an answer.

    Raises:
        ContributionError: they are not there.
    """
    found = answer.get(name)
    if not isinstance(found, ArrayRecord):
        raise ContributionError(f"an answer has no {name!r}", where="round", remedy="use one version everywhere")
    return list(found.to_numpy_ndarrays())


def answers(replies: Iterable[Message]) -> Answers:
    """What came back. A client that is silent is missing; one that refuses stops the run.

    Raises:
        ContributionError: a client refuses, or its process failed.
    """
    found = {}
    for reply in replies:
        node = int(reply.metadata.src_node_id)
        if reply.has_error():
            raise ContributionError(
                f"the client's process failed with Flower's code {reply.error.code}",
                where=f"node {node}",
                remedy="see that node's own log",
            )
        if wire.REFUSED in reply.content:
            told = reply.content[wire.REFUSED]
            raise ContributionError(str(told["what"]), where=str(told["where"]), remedy=str(told["remedy"]))
        if wire.AWAY not in reply.content:
            found[node] = reply.content
    return found


def ask(grid: Grid, nodes: Iterable[int], kind: str, made: RecordDict) -> Answers:
    """Ask nodes in a round. Who is silent is missing.

    Raises:
        ContributionError: as :func:`answers`.
    """
    return answers(grid.send_and_receive([Message(made, dst_node_id=node, message_type=kind) for node in nodes]))


def ask_all(grid: Grid, nodes: Iterable[int], kind: str, made: RecordDict) -> Answers:
    """Ask nodes outside of a round, when all of them must be there.

    Raises:
        ContributionError: as :func:`answers`; also where one does not answer.
    """
    asked = list(nodes)
    found = ask(grid, asked, kind, made)
    if len(found) != len(asked):
        raise ContributionError(
            f"{len(asked) - len(found)} of {len(asked)} clients did not answer {kind!r}",
            where="round",
            remedy="see that every node runs, then resume",
        )
    return found


def setting(answer: RecordDict, record: str, name: str) -> int:
    """One whole number of an answer.

    Raises:
        ContributionError: it is not there.
    """
    found = answer.get(record)
    value = found.get(name) if isinstance(found, ConfigRecord) else None
    if not isinstance(value, int):
        raise ContributionError(f"an answer has no {record}.{name}", where="round", remedy="use one version everywhere")
    return value
