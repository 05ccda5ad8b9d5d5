"""A grid that does not sleep through its answers."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

_SOONEST, _LATEST, _SHARE = 0.002, 1.0, 0.05
"""Seconds between two looks for answers: at least, at most, and as a share of the time waited so far."""


class AttentiveGrid(Grid):
    """Another grid, which is asked for answers often at first, then less and less.

    Flower's own wait looks every 0.1 s in a simulation and every 3 s over a network: a short round spends most of its
    time asleep.
    """

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def set_run(self, run: Any) -> None:
        self._grid.set_run(run)

    @property
    def run(self) -> Any:
        return self._grid.run

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        return self._grid.create_message(content, message_type, dst_node_id, group_id, ttl)

    def get_node_ids(self) -> Iterable[int]:
        return self._grid.get_node_ids()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        return self._grid.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return self._grid.pull_messages(message_ids)

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Replies that came within ``timeout`` seconds, for ever by default."""
        waiting = set(self.push_messages(messages))
        found: list[Message] = []
        began = time.monotonic()
        while waiting:
            came = list(self.pull_messages(waiting))
            waiting -= {reply.metadata.reply_to_message_id for reply in came}
            found += came
            waited = time.monotonic() - began
            if timeout is not None and waited >= timeout:
                break
            if waiting:
                time.sleep(min(max(_SOONEST, _SHARE * waited), _LATEST))
        return found
