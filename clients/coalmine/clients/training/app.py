"""Flower's ClientApp: one client of a federated DP-SGD run. With ``app_records`` this room's door to Flower.

What a client holds (samples, which of them filterings dropped, its accountant) stays in its own context. It sends sums
of clipped gradients or noised models; with scope ``federation`` also ids, labels and signatures, to a trusted server.
In a round in which the study's population has it away, it says that and nothing else, whatever it is asked.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from coalmine.clients.training.app_records import arrays, integers, put_arrays, put_settings, whole_number
from coalmine.clients.training.order import Client, client, name_of
from coalmine.protocol.dpsgd import wire
from coalmine.protocol.dpsgd.terms import Mode, Scope
from coalmine.protocol.errors import CoalmineError, ContributionError, DataError

app = ClientApp()

_STATE, _ACTIVE = "coalmine", "coalmine-active"
Answer = Callable[[Message, Context, Client], RecordDict]


def _answering(answer: Answer, message: Message, context: Context) -> Message:
    """A refusal is an answer too: the server learns what is wrong, and nothing private."""
    try:
        who = client(context.run_config, context.node_config)
        if _away(message, who):
            content = RecordDict()
            put_settings(content, wire.AWAY)
        else:
            content = answer(message, context, _unchanged(context, who))
    except CoalmineError as error:
        content = RecordDict()
        put_settings(content, wire.REFUSED, what=error.what, where=error.where or "", remedy=error.remedy or "")
    return Message(content, reply_to=message)


def _away(message: Message, who: Client) -> bool:
    """The beginning and the evaluation lie outside of rounds."""
    order = message.content[wire.ORDER]
    return "round" in order and not who.answers(whole_number(order, "round"))


@app.train()
def train(message: Message, context: Context) -> Message:
    """One round: a sum of clipped gradients, or a model after noised local steps."""
    return _answering(_train, message, context)


@app.query("initial")
def initial(message: Message, context: Context) -> Message:
    """The seed's initial model, the same for every client, and this client's number."""
    return _answering(_initial, message, context)


@app.query("filter")
def catch_up(message: Message, context: Context) -> Message:
    """A filtering that this client has not seen: it drops its own top k under the model of then."""
    return _answering(_filter, message, context)


@app.query("rank")
def rank(message: Message, context: Context) -> Message:
    """Scope ``federation``: ids, labels and signatures of all active samples."""
    return _answering(_rank, message, context)


@app.query("drop")
def forget(message: Message, context: Context) -> Message:
    """Scope ``federation``: what a filtering took from this client."""
    return _answering(_drop, message, context)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    """How many public test samples the model gets right."""
    return _answering(_evaluate, message, context)


def _train(message: Message, context: Context, who: Client) -> RecordDict:
    order, reply = message.content[wire.ORDER], RecordDict()
    step, number = whole_number(order, "step"), whole_number(order, "filtering")
    (theta,) = arrays(message.content, wire.MODEL)
    done = _done(context)
    if done != whole_number(order, "done"):
        put_settings(reply, wire.BEHIND, done=done)
        return reply
    if number >= 0:
        _filtering(message, context, who, theta, step, number)
    if who.terms.mode is Mode.LOCAL:
        return _local(message, context, who, theta, step)
    holder = who.holder()
    holder.restore(_active(context, who))
    put_arrays(reply, wire.SUM, holder.whole_sum(theta, step, who.terms.bits))
    return reply


def _local(message: Message, context: Context, who: Client, theta: np.ndarray, step: int) -> RecordDict:
    from coalmine.clients.training.fast.local import noised_steps

    reply = RecordDict()
    after = noised_steps(who, theta, step, _active(context, who))
    put_arrays(reply, wire.MODEL, after)
    spent = max(_number(context, "spent"), whole_number(message.content[wire.ORDER], "spent")) + who.terms.local_steps
    _keep(context, spent=spent)
    put_settings(reply, wire.ACCOUNT, client=who.number, steps=spent)
    return reply


def _initial(message: Message, context: Context, who: Client) -> RecordDict:
    reply = RecordDict()
    put_arrays(reply, wire.MODEL, who.engine().initial(who.terms.seed))
    put_settings(reply, wire.ACCOUNT, client=who.number, steps=_number(context, "spent"))
    return reply


def _filter(message: Message, context: Context, who: Client) -> RecordDict:
    order = message.content[wire.ORDER]
    (theta,) = arrays(message.content, wire.MODEL)
    number = whole_number(order, "filtering")
    if number >= _done(context):
        _filtering(message, context, who, theta, whole_number(order, "step"), number)
    return RecordDict()


def _rank(message: Message, context: Context, who: Client) -> RecordDict:
    if who.terms.scope is not Scope.FEDERATION:
        raise ContributionError("this client ranks for itself alone", where="filter", remedy="its scope is 'client'")
    (theta,) = arrays(message.content, wire.MODEL)
    holder = who.holder()
    holder.restore(_active(context, who))
    step = whole_number(message.content[wire.ORDER], "step")
    found = holder.ranked(theta, step, _updates(message, theta))
    reply = RecordDict()
    put_arrays(reply, wire.RANKED, found.ids, found.labels, found.scores)
    return reply


def _drop(message: Message, context: Context, who: Client) -> RecordDict:
    number = whole_number(message.content[wire.ORDER], "filtering")
    if number >= _done(context):
        _forget(message, context, who, number)
    return RecordDict()


def _evaluate(message: Message, context: Context, who: Client) -> RecordDict:
    from coalmine.clients.training.fast.build import engine
    from coalmine.clients.training.fast.local import right

    (theta,) = arrays(message.content, wire.MODEL)
    reply = RecordDict()
    put_settings(reply, wire.ACCOUNT, right=right(engine(who.spec), theta, who.test), of=len(who.test))
    return reply


def _filtering(message: Message, context: Context, who: Client, theta: np.ndarray, step: int, number: int) -> None:
    if who.terms.scope is Scope.FEDERATION:
        _forget(message, context, who, number)
        return
    holder = who.holder()
    holder.restore(_active(context, who))
    holder.filter_own(theta, step, _updates(message, theta))
    _after(context, holder.active, number)


def _forget(message: Message, context: Context, who: Client, number: int) -> None:
    active = _active(context, who)
    active[integers(message.content, wire.FORGET)] = False
    _after(context, active, number)


def _after(context: Context, active: np.ndarray, number: int) -> None:
    put_arrays(context.state, _ACTIVE, active)
    _keep(context, done=number + 1)


def _updates(message: Message, theta: np.ndarray) -> np.ndarray:
    if wire.UPDATES not in message.content:
        return np.zeros((0, len(theta)))
    return arrays(message.content, wire.UPDATES)[0]


def _active(context: Context, who: Client) -> np.ndarray:
    """(universe,) own samples that no filtering dropped."""
    if _ACTIVE in context.state:
        return arrays(context.state, _ACTIVE)[0].astype(np.bool_)
    everything = np.zeros(who.terms.universe, np.bool_)
    everything[who.ids] = True
    return everything


def _unchanged(context: Context, who: Client) -> Client:
    """Raises:
    DataError: this client holds other samples than in its first round."""
    known = context.state[_STATE].get("digest") if _STATE in context.state else None
    if known is None:
        _keep(context, digest=who.digest)
    elif known != who.digest:
        raise DataError(
            "its data changed between rounds", where=name_of(who.number), remedy="start a new run on the new data"
        )
    return who


def _done(context: Context) -> int:
    return _number(context, "done")


def _number(context: Context, name: str) -> int:
    return whole_number(context.state[_STATE], name, 0) if _STATE in context.state else 0


def _keep(context: Context, **values: int | str) -> None:
    before = dict(context.state[_STATE]) if _STATE in context.state else {}
    put_settings(context.state, _STATE, **{**before, **values})
