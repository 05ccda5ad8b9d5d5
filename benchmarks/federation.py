"""A round of federated DP-SGD beside a bare Flower round with the same payload, both in Flower's own simulation."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

import numpy as np
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import ClientAppCallable
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation

from benchmarks.measurement import Measurement
from coalmine.clients.training import app as clients
from coalmine.clients.training.app_records import put_arrays
from coalmine.deploy.study_training import TrainingSection
from coalmine.deploy.training.federation import run_in_process
from coalmine.protocol.dpsgd import wire
from coalmine.server.training import app as server
from coalmine.server.training.exchange import arrays, content

CLIENTS, ROUNDS, WARM_UP = 10, 60, 10
PARAMETERS = 64 * 32 + 32 + 32 * 10 + 10


def measure() -> list[Measurement]:
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    settings = TrainingSection(clients=CLIENTS, steps=ROUNDS, sigma=1.0, q=0.1, filter=None).settings(1)
    bare = _simulated(_bare_server, _bare_client())
    eager = _simulated(_eager_server, _bare_client())
    ours = _simulated(lambda grid, context: server.app(grid, _with(settings, context)), _our_client(settings))
    ended: list[float] = []
    run_in_process(server.app, clients.app, settings, CLIENTS, lambda _: ended.append(time.perf_counter()))
    return [
        Measurement("bare Flower round, 10 clients, 2,410 parameters", bare, "s"),
        Measurement("the same, looking for answers every 2 ms instead of 100", eager, "s"),
        Measurement("our round in the same simulation, gradients included", ours, "s"),
        Measurement("our round over a bare one", ours / bare, "x", "at most 1.3"),
        Measurement("our round over the one that looks more often", ours / eager, "x", "at most 1.3"),
        Measurement("our round in one process (`coalmine train`)", _between(ended), "s"),
    ]


def _simulated(main: Callable[[Grid, Context], None], client: ClientApp) -> float:
    """Median seconds from one round of training to the next."""
    begun: list[float] = []
    app = ServerApp()

    @app.main()
    def timed(grid: Grid, context: Context) -> None:
        push = grid.push_messages

        def noted(messages: Iterable[Message]) -> Iterable[str]:
            asked = list(messages)
            if asked and asked[0].metadata.message_type.startswith("train"):
                begun.append(time.perf_counter())
            return push(asked)

        grid.push_messages = noted  # type: ignore[method-assign]
        main(grid, context)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.getLogger("flwr").setLevel(logging.ERROR)
        run_simulation(app, client, CLIENTS, backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}})
    return _between(begun)


def _between(moments: list[float]) -> float:
    """Median seconds from one to the next, the first few left out."""
    return median(np.diff(moments[WARM_UP:]).tolist())


def _bare_server(grid: Grid, context: Context) -> None:
    """Sends a model, adds what comes back, moves on: nothing that a federated mean could do without."""
    while len(nodes := list(grid.get_node_ids())) < CLIENTS:
        time.sleep(0.1)
    theta = np.zeros(PARAMETERS)
    for number in range(ROUNDS):
        made = content({wire.MODEL: [theta]}, step=number)
        replies = grid.send_and_receive([Message(made, dst_node_id=node, message_type="train") for node in nodes])
        theta = theta + sum(arrays(reply.content, wire.SUM)[0] for reply in replies)


def _eager_server(grid: Grid, context: Context) -> None:
    """The bare one where Flower, which looks for answers every 0.1 s, does so at our first pace."""
    grid.pull_interval = 0.002  # type: ignore[attr-defined]
    _bare_server(grid, context)


def _bare_client() -> ClientApp:
    app = ClientApp()

    @app.train()
    def answer(message: Message, context: Context) -> Message:
        reply = RecordDict()
        put_arrays(reply, wire.SUM, np.zeros(PARAMETERS, np.int64))
        return Message(reply, reply_to=message)

    return app


def _our_client(settings: dict[str, Any]) -> ClientApp:
    def configured(message: Message, context: Context, proceed: ClientAppCallable) -> Message:
        return proceed(message, _with(settings, context))

    app = ClientApp(mods=[configured])
    app.train()(clients.train)
    app.query("initial")(clients.initial)
    app.evaluate()(clients.evaluate)
    return app


def _with(settings: dict[str, Any], context: Context) -> Context:
    """The same context under settings, which Flower's own must keep; what is kept in its state stays there."""
    return Context(
        run_id=context.run_id,
        node_id=context.node_id,
        node_config=context.node_config,
        state=context.state,
        run_config=settings,
    )
