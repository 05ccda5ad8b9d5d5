"""A federation inside this process: the same Flower apps, the same messages, no network and no other process.

Flower's own simulation costs about 0.2 s a round and a call that Flower has deprecated; a round is one step of DP-SGD,
and there are hundreds. Clients answer one after another, which changes no number: sums are integers.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from coalmine.protocol.errors import ContributionError

_RUN, _SERVER = 1, 0


class InProcessGrid(Grid):
    """Hands each message to the app of the client it is for, with that client's own context.

    Args:
        app: of the clients. settings: of the run. clients: how many; node 1 is client 0.
        advance: called with 1 for every round of training.
    """

    def __init__(
        self, app: ClientApp, settings: Mapping[str, Any], clients: int, advance: Callable[[int], None]
    ) -> None:
        self._app, self._advance = app, advance
        self.contexts = {
            number + 1: Context(
                run_id=_RUN,
                node_id=number + 1,
                node_config={"partition-id": number, "num-partitions": clients},
                state=RecordDict(),
                run_config=dict(settings),
            )
            for number in range(clients)
        }
        self._replies: dict[str, Message] = {}

    def set_run(self, run: Any) -> None:
        """There is one run."""

    @property
    def run(self) -> Any:
        raise ContributionError("a federation in one process has no run record", where="grid")

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        return Message(content, dst_node_id=dst_node_id, message_type=message_type, group_id=group_id, ttl=ttl)

    def get_node_ids(self) -> Iterable[int]:
        return list(self.contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        names, trained = [], False
        for message in messages:
            name = uuid.uuid4().hex
            message.metadata.__dict__["_message_id"] = name  # as Flower's own grids name what they send
            self._replies[name] = self._app(message, self.contexts[message.metadata.dst_node_id])
            names.append(name)
            trained |= message.metadata.message_type == "train"
        if trained:
            self._advance(1)
        return names

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return [self._replies.pop(name) for name in message_ids if name in self._replies]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        return self.pull_messages(self.push_messages(messages))


def run_in_process(
    server: ServerApp, client: ClientApp, settings: Mapping[str, Any], clients: int, advance: Callable[[int], None]
) -> Context:
    """Run both apps to the end; the server's context holds what it left there.

    Raises:
        CoalmineError: what an app raised or a client refused.
    """
    context = Context(run_id=_RUN, node_id=_SERVER, node_config={}, state=RecordDict(), run_config=dict(settings))
    with server_identity(), _flower_is_silent():
        server(InProcessGrid(client, settings, clients, advance), context)
    return context


@contextmanager
def server_identity() -> Iterator[None]:
    """Flower's messages name who made them, by an identity of the process that its launchers set."""
    from flwr.supercore.task_identity import TaskIdentity

    names = ("_task_id", "_run_id", "_node_id")
    before = {name: getattr(TaskIdentity, name) for name in names}
    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = _RUN, _RUN, _SERVER
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(TaskIdentity, name, value)


@contextmanager
def _flower_is_silent() -> Iterator[None]:
    """Flower tells several lines a round; here a bar shows where the run stands."""
    log = logging.getLogger("flwr")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
