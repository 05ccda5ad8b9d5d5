"""The Flower apps in one process: the same model as one process that holds everything, at any number of clients."""

import numpy as np
import pytest
import torch
from fakes import federation

pytest.importorskip("flwr", reason="needs coalmine[federated]")

from flwr.app import Context, Message, RecordDict

from coalmine.clients.training.app import app as client_app
from coalmine.clients.training.fast.build import engine
from coalmine.clients.training.fast.filtering import by_client
from coalmine.clients.training.fast.population import Population
from coalmine.clients.training.order import client
from coalmine.clients.training.plan import Execution, Plan
from coalmine.clients.training.source import SourceSpec, samples
from coalmine.deploy.training.federation import InProcessGrid, run_in_process, server_identity
from coalmine.protocol.dpsgd import wire
from coalmine.protocol.dpsgd.terms import terms
from coalmine.protocol.errors import ContributionError, StudyError
from coalmine.server.training import app as server_app
from coalmine.server.training.exchange import answers, content
from coalmine.server.training.standing import Standing

torch.set_num_threads(1)
SETTINGS = {**federation.SETTINGS, "scope": "federation", "filter.signature": "grad_cosine"}
N = federation.N


def run(**changes):
    settings = {**SETTINGS, **changes}
    context = run_in_process(server_app.app, client_app, settings, settings["clients"], lambda _: None)
    account = dict(context.state[server_app.ACCOUNT])
    return context.state[server_app.MODEL].to_numpy_ndarrays()[0], account


@pytest.fixture(scope="module")
def trained():
    return run()[0]


def test_any_number_of_clients_gives_the_same_bits(trained):
    for clients in (1, 10):
        assert np.array_equal(run(clients=clients)[0], trained)
    skewed = run(clients=5, **{"partition.kind": "dirichlet", "partition.alpha": 0.05, "partition.allow_empty": True})
    assert np.array_equal(skewed[0], trained)


def test_the_same_numbers_as_the_fast_trainer(trained):
    agreed = terms(SETTINGS)
    data = samples(SourceSpec(train=N, test=50, seed=7)).train
    plan = Plan(agreed.mechanism, agreed.steps, agreed.optimiser, agreed.filter)
    chosen = engine(client(SETTINGS, {"partition-id": 0}).spec)
    one = Population(chosen, plan, data, np.ones((1, N), bool), [7], execution=Execution(double=True)).run()
    assert (one.dropped >= 0).sum() == 20
    assert np.abs(one.theta[0] - trained).max() < 1e-10
    assert np.abs(one.theta[0] - chosen.initial(7)).max() > 0.1


def test_clients_that_filter_for_themselves_are_the_fast_trainer_with_groups():
    settings = {**SETTINGS, "scope": "client"}
    agreed, data = terms(settings), samples(SourceSpec(train=N, test=50, seed=7)).train
    holder = np.zeros(N, np.int64)
    for number in range(3):
        holder[client(settings, {"partition-id": number}).ids] = number
    plan = Plan(agreed.mechanism, agreed.steps, agreed.optimiser, agreed.filter)
    one = Population(
        engine(client(settings, {"partition-id": 0}).spec),
        plan,
        data,
        np.ones((1, N), bool),
        [7],
        groups=by_client(holder, data.y, agreed.filter.reach),
        execution=Execution(double=True),
    ).run()
    assert (one.dropped >= 0).sum() > 40
    assert np.abs(one.theta[0] - run(scope="client")[0]).max() < 1e-10


@pytest.mark.parametrize("scope", ["client", "federation"])
@pytest.mark.parametrize("stop", [4, 7])
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path, scope, stop):
    path = str(tmp_path / "run.npz")
    whole, _ = run(scope=scope)

    settings = {**SETTINGS, "scope": scope, "checkpoint": path}
    with pytest.raises(federation.Stopped):
        run_in_process(server_app.app, client_app, settings, 3, federation.stops_after(stop))
    assert Standing.load(tmp_path / "run.npz").step == stop
    resumed, account = run(scope=scope, checkpoint=path, resume=True)
    assert np.array_equal(resumed, whole)
    assert account["steps"] == 12


def test_clients_that_filter_for_themselves_drop_more_and_tell_nothing(trained):
    grid = InProcessGrid(client_app, {**SETTINGS, "scope": "client"}, 3, lambda _: None)
    sent = []
    hand_over = grid.push_messages

    def watched(messages):
        names = hand_over(messages)
        sent.extend(grid._replies[name].content for name in names)
        return names

    grid.push_messages = watched
    with server_identity():
        server_app.app(grid, Context(1, 0, {}, RecordDict(), {**SETTINGS, "scope": "client"}))
    assert {name for content in sent for name in content} == {wire.MODEL, wire.ACCOUNT, wire.SUM}
    left = sum(int(one.state["coalmine-active"].to_numpy_ndarrays()[0].sum()) for one in grid.contexts.values())
    assert N - 2 * 3 * 10 <= left < N - 20  # at most k of each client and class, twice


def test_local_mode_averages_noised_models_and_keeps_each_accountant():
    changes = {"mode": "local", "scope": "client", "steps": 8, "local_steps": 4, "filter.signature": "grad_l2"}
    averaged, account = run(**changes)
    assert account["steps"] == 8
    assert np.array_equal(averaged, run(**changes)[0])
    quiet = {**changes, "sigma": 1e-9, "filter.on": False, "momentum": 0.0, "clients": 1, "local_steps": 1}
    central = {**quiet, "mode": "gradient"}
    assert np.abs(run(**quiet)[0] - run(**central)[0]).max() < 1e-6
    assert np.abs(run(**{**quiet, "sigma": 1.0})[0] - run(**quiet)[0]).max() > 1e-3


def test_the_accountant_of_a_client_survives_a_resumed_run(tmp_path):
    changes = {"mode": "local", "scope": "client", "filter.on": False, "checkpoint": str(tmp_path / "run.npz")}
    run(**changes, steps=4, local_steps=2)
    _, account = run(**changes, steps=8, local_steps=2, resume=True)
    assert account["steps"] == 8


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"universe": 100}, "universe"),
        ({"data.source": "digit"}, "digits"),
        ({"model.kind": "cnn"}, "too small"),
        ({"partition.kind": "random"}, "iid"),
        ({"data.sorce": "digits"}, "data.source|source"),
        ({"lr": 1e200, "model.activation": "relu"}, "not a number"),
    ],
)
def test_what_a_client_refuses_stops_the_run_with_its_reason(change, said):
    with pytest.raises((ContributionError, StudyError), match=said):
        run(**change)


def test_a_client_whose_data_changed_is_refused():
    grid = InProcessGrid(client_app, SETTINGS, 3, lambda _: None)
    with server_identity():
        ask = lambda: answers(grid.send_and_receive([Message(content({}), 1, wire.INITIAL)]))  # noqa: E731
        ask()
        grid.contexts[1].run_config["data.source"] = "purchases"
        grid.contexts[1].run_config["data.rows"] = 1000
        with pytest.raises(ContributionError, match="client 0: its data changed"):
            ask()


def test_a_node_with_a_file_of_its_own_trains_on_that(tmp_path, trained):
    data = samples(SourceSpec(train=N, test=50, seed=7)).train
    settings = {**SETTINGS, "clients": 2}
    grid = InProcessGrid(client_app, settings, 2, lambda _: None)
    for number, (first, last) in enumerate(((0, 70), (70, N))):
        path = tmp_path / f"{number}.npz"
        np.savez(path, x=data.x[first:last], y=data.y[first:last])
        grid.contexts[number + 1].node_config |= {"data": str(path), "first-id": first}
    context = Context(1, 0, {}, RecordDict(), settings)
    with server_identity():
        server_app.app(grid, context)
    assert np.array_equal(context.state[server_app.MODEL].to_numpy_ndarrays()[0], trained)
