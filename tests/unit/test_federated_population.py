"""Clients of a federation that come and go, compared with a plain loop over the clients' own parts."""

from io import StringIO

import numpy as np
import pytest
import torch
from fakes import federation

pytest.importorskip("flwr", reason="needs coalmine[federated]")

from flwr.app import Context, RecordDict
from rich.console import Console

from coalmine.clients.population.availability import Diurnal, Independent
from coalmine.clients.population.conditions import Conditions, Deadline
from coalmine.clients.population.settings import conditions
from coalmine.clients.training.app import app as client_app
from coalmine.clients.training.order import client
from coalmine.deploy.progress import Stages
from coalmine.deploy.study_file import build_study
from coalmine.deploy.training.checks import unmodelled
from coalmine.deploy.training.federation import InProcessGrid, run_in_process, server_identity
from coalmine.deploy.training.prepare import MODEL, prepared
from coalmine.deploy.training.train import train
from coalmine.protocol.dpsgd import wire
from coalmine.protocol.dpsgd.claims import claim
from coalmine.protocol.dpsgd.filter import drop
from coalmine.protocol.dpsgd.fixed_point import real
from coalmine.protocol.dpsgd.optimiser import State
from coalmine.protocol.dpsgd.step import noised_gradient
from coalmine.protocol.dpsgd.terms import Scope, terms
from coalmine.protocol.errors import DataError, StudyError
from coalmine.protocol.randomness import Purpose, stream
from coalmine.server.training import app as server_app
from coalmine.server.training.standing import Standing

torch.set_num_threads(1)
N, CLIENTS, STEPS = federation.N, federation.CLIENTS, federation.STEPS
SETTINGS = {**federation.SETTINGS, "scope": "client", "filter.signature": "grad_cosine"}
DIURNAL = {
    "population.availability": "diurnal",
    "population.lowest": 0.0,
    "population.highest": 1.0,
    "population.hours_per_round": 3.0,
    "population.zones": "0:1,8:2",
}
LATE = {
    "population.availability": "independent",
    "population.rate": 0.7,
    "population.dropout": 0.2,
    "population.deadline": 2.0,
}
NOBODY = {"population.dropout": 1.0}
LOCAL = {"mode": "local", "steps": 24, "local_steps": 2, "filter.signature": "grad_l2", "filter.every": 2}
ABSENCES = "user,from,to\nclient 0,0,3\nclient 0,8,20\nclient 2,1,6\nclient 2,9,10\n"
"""Away at a filtering (steps 0 and 4): client 1 always, client 2 at the first; nobody is there in round 7."""


@pytest.fixture
def trace(tmp_path):
    (tmp_path / "trace.csv").write_text(ABSENCES)
    return {"population.availability": "trace", "population.trace": str(tmp_path / "trace.csv")}


def watched(settings):
    """The model, every (round, client) whose answer counted, and each client's state."""
    grid, heard = InProcessGrid(client_app, settings, settings["clients"], lambda _: None), set()
    hand_over = grid.push_messages

    def push(messages):
        sent = list(messages)
        names = hand_over(sent)
        for name, message in zip(names, sent, strict=True):
            reply = grid._replies[name]
            if message.metadata.message_type == "train" and (wire.SUM in reply.content or wire.MODEL in reply.content):
                heard.add((message.content[wire.ORDER]["round"], reply.metadata.src_node_id - 1))
            assert wire.BEHIND not in reply.content, "who was away catches up before it is asked to train"
        return names

    grid.push_messages = push
    context = Context(1, 0, {}, RecordDict(), settings)
    with server_identity():
        server_app.app(grid, context)
    states = [grid.contexts[number + 1].state for number in range(settings["clients"])]
    return context.state[server_app.MODEL].to_numpy_ndarrays()[0], heard, states


def run(**changes):
    settings = {**SETTINGS, **changes}
    context = run_in_process(server_app.app, client_app, settings, settings["clients"], lambda _: None)
    return context.state[server_app.MODEL].to_numpy_ndarrays()[0], dict(context.state[server_app.ACCOUNT])


def answering(settings):
    """From the conditions alone: (round, client) of everybody who answers."""
    found, agreed = conditions(settings), terms(settings)
    key = str(settings["seed"]).encode()
    return {
        (time, number)
        for time in range(agreed.rounds)
        for number in range(agreed.clients)
        if found.answers(key, time, f"client {number}")
    }


def plainly(settings, there):
    """The method as a loop: who is there in a round adds its sum. With scope ``client`` everybody filters in time."""
    agreed = terms(settings)
    holders = [client(settings, {"partition-id": number}).holder() for number in range(agreed.clients)]
    theta = client(settings, {"partition-id": 0}).engine().initial(agreed.seed)
    state, updates = State(), np.zeros((0, len(theta)))
    for step in range(agreed.steps):
        present = [holder for number, holder in enumerate(holders) if (step, number) in there]
        if step in agreed.filterings and agreed.scope is Scope.CLIENT:
            for holder in holders:
                holder.filter_own(theta, step, updates)
        elif step in agreed.filterings:
            ranked = [holder.ranked(theta, step, updates) for holder in present]
            columns = [[getattr(one, name) for one in ranked] for name in ("ids", "labels", "scores")]
            gone = drop(*map(np.concatenate, columns), agreed.filter.k, agreed.filter.reach) if ranked else []
            for holder in present:
                holder.forget(gone)
        total = np.zeros(len(theta), np.int64)
        for holder in present:
            total += holder.whole_sum(theta, step, agreed.bits)
        noise = stream(agreed.seed, Purpose.NOISE, step)
        update = noised_gradient(real(total, agreed.mechanism, agreed.bits), agreed.mechanism, noise)
        theta, state = agreed.optimiser.step(theta, update, state)
        updates = update[None]
    return theta, [holder.active for holder in holders]


@pytest.mark.parametrize("scope", ["client", "federation"])
@pytest.mark.parametrize("population", [DIURNAL, LATE, "trace", NOBODY])
def test_the_conditions_decide_who_answers_and_the_model_is_that_of_a_plain_loop(population, scope, trace):
    settings = {**SETTINGS, "scope": scope, **(trace if population == "trace" else population)}
    there = answering(settings)
    assert len(there) < STEPS * CLIENTS, "somebody is away"
    model, heard, states = watched(settings)
    assert heard == there
    theta, active = plainly(settings, there)
    assert np.array_equal(model, theta)
    assert np.array_equal(watched(settings)[0], model)
    for number, state in enumerate(states):
        last = max((time for time, one in there if one == number), default=-1)
        if last > 4:  # its last answer came after both filterings, so it has caught up with them
            assert state["coalmine"]["done"] == 2
            assert np.array_equal(state["coalmine-active"].to_numpy_ndarrays()[0].astype(bool), active[number])


def test_the_cases_of_this_file_are_what_they_say(trace):
    there = answering({**SETTINGS, **trace})
    assert {0, 4} <= {time for time in range(STEPS) if (time, 1) not in there}
    assert (0, 2) not in there
    assert (4, 2) in there
    assert not [one for one in there if one[0] == 7]
    assert len(answering({**SETTINGS, **DIURNAL})) > 6 < len(answering({**SETTINGS, **LATE}))
    assert conditions(LATE) == Conditions(Independent(0.7), 0.2, Deadline(2.0))
    assert conditions(DIURNAL) == Conditions(Diurnal(0.0, 1.0, hours_per_round=3.0, zones=((0.0, 1.0), (8.0, 2.0))))
    for scope in ("client", "federation"):
        everybody = {(time, number) for time in range(STEPS) for number in range(CLIENTS)}
        assert np.array_equal(run(scope=scope)[0], plainly({**SETTINGS, "scope": scope}, everybody)[0])


@pytest.mark.parametrize("scope", ["client", "federation"])
def test_a_client_that_lost_its_memory_says_so_adds_nothing_and_catches_up(scope):
    settings, rounds = {**SETTINGS, "scope": scope}, []

    def advance(_):
        rounds.append(1)
        if len(rounds) == 7:
            grid.contexts[2].state = RecordDict()

    grid = InProcessGrid(client_app, settings, CLIENTS, advance)
    context = Context(1, 0, {}, RecordDict(), settings)
    with server_identity():
        server_app.app(grid, context)
    there = {(time, number) for time in range(STEPS) for number in range(CLIENTS)} - {(7, 1)}
    theta, active = plainly(settings, there)
    assert np.array_equal(context.state[server_app.MODEL].to_numpy_ndarrays()[0], theta)
    kept = grid.contexts[2].state["coalmine-active"].to_numpy_ndarrays()[0].astype(bool)
    assert np.array_equal(kept, active[1])
    assert kept.sum() < len(client(settings, {"partition-id": 1}).ids)


def test_where_nobody_ever_answers_noise_alone_moves_the_model():
    agreed = terms(SETTINGS)
    theta, state = client(SETTINGS, {"partition-id": 0}).engine().initial(7), State()
    for step in range(STEPS):
        update = noised_gradient(np.zeros(len(theta)), agreed.mechanism, stream(7, Purpose.NOISE, step))
        theta, state = agreed.optimiser.step(theta, update, state)
    for scope in ("client", "federation"):
        model, account = run(scope=scope, **NOBODY)
        assert np.array_equal(model, theta)
        assert account["steps"] == STEPS
    silent, account = run(**LOCAL, **NOBODY)
    assert np.array_equal(silent, client(SETTINGS, {"partition-id": 0}).engine().initial(7))
    assert account["steps"] == 0


@pytest.mark.parametrize("population", [DIURNAL, LATE, "trace"])
def test_a_round_of_the_local_mode_is_one_time_of_the_schedule(population, trace):
    settings = {**SETTINGS, **LOCAL, **(trace if population == "trace" else population)}
    there = answering(settings)
    model, heard, states = watched(settings)
    assert heard == there
    assert np.array_equal(watched(settings)[0], model)
    for number, state in enumerate(states):
        took = 2 * sum(one == number for _, one in there)
        assert state["coalmine"].get("spent", 0) == took


@pytest.mark.parametrize("changes", [{"scope": "client"}, {"scope": "federation"}, LOCAL])
@pytest.mark.parametrize("stop", [4, 5])
@pytest.mark.parametrize("population", [DIURNAL, LATE, "trace"])
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path, changes, stop, population, trace):
    changes = {**changes, **(trace if population == "trace" else population)}
    path = str(tmp_path / "run.npz")
    whole, _ = run(**changes)

    settings = {**SETTINGS, **changes, "checkpoint": path}
    with pytest.raises(federation.Stopped):
        run_in_process(server_app.app, client_app, settings, CLIENTS, federation.stops_after(stop))
    assert Standing.load(tmp_path / "run.npz").step == stop * settings["local_steps"]
    assert np.array_equal(run(**changes, checkpoint=path, resume=True)[0], whole)


def study(population, **training):
    small = {"clients": 3, "sigma": 1.0, "steps": 4, "data": {"train": 100, "test": 50}, "model": {"hidden": [4]}}
    return build_study({"study": "s", "population": population, "training": {**small, **training}})


@pytest.mark.parametrize("training", [{}, {"mode": "local", "local_steps": 2}])
def test_the_claim_is_that_of_a_client_that_is_always_there(tmp_path, training):
    populations = {"all": {}, "some": {"availability": "diurnal"}, "none": {"dropout": 1}}
    found = {}
    for name, population in populations.items():
        (tmp_path / name).mkdir()
        stages = Stages(Console(file=StringIO()))
        found[name] = train(study(population, **training), tmp_path / name, stages)[0]
    agreed = terms(study({}, **training).training.settings(0))
    assert {one.claim for one in found.values()} == {claim(agreed.mechanism, 4)}
    models = {name: np.load(tmp_path / name / MODEL)["theta"] for name in found}
    assert not np.array_equal(models["all"], models["none"])
    assert found["none"].facts["population.dropout"] == "1.0"


def test_a_trace_that_names_no_client_is_refused_before_training(tmp_path):
    (tmp_path / "users.csv").write_text("user,round\nclient 3,0\nsomebody,1\n")
    population = {"availability": "trace", "trace": str(tmp_path / "users.csv")}
    with pytest.raises(DataError, match=r"names none of the study's 3 clients .*'client 0' to 'client 2'"):
        prepared(study(population))
    flat = build_study({"population": population}).population.settings()
    with pytest.raises(DataError, match="names none of the study's 3 clients"):
        client({**SETTINGS, **flat}, {"partition-id": 0})
    ready = prepared(study(population, clients=4))
    facts = ready.facts(0)
    assert facts["population.trace"] == "users.csv"
    assert facts["trace digest"] == ready.conditions.availability.digest
    assert "somebody" not in str(facts)
    with pytest.raises(DataError, match=r"gone\.csv: cannot be read"):
        prepared(study({**population, "trace": str(tmp_path / "gone.csv")}))


def test_a_wrong_setting_is_refused_by_every_client():
    with pytest.raises(StudyError, match=r"population\.rat: this key is not known"):
        client({**SETTINGS, "population.rat": 0.5}, {"partition-id": 0})


def test_the_old_key_names_the_new_one():
    with pytest.raises(StudyError, match=r"training\.dropout: this key has moved \(use population\.dropout\)"):
        study({}, dropout=0.1)


def test_an_audit_says_that_its_shadow_models_hear_everybody():
    assert unmodelled(prepared(study({}))) == ()
    (said,) = unmodelled(prepared(study({"availability": "independent", "rate": 0.9})))
    assert "hear every client in every round" in said
