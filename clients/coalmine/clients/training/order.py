"""From the flat settings of a federated run to what one client does in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coalmine.clients.population.conditions import Conditions
from coalmine.clients.population.settings import PREFIX, conditions
from coalmine.clients.population.trace import Trace
from coalmine.clients.training import partitions, table_files
from coalmine.clients.training.models import Activation, Kind, ModelSpec
from coalmine.clients.training.plan import Execution, Plan
from coalmine.clients.training.source import Samples, SourceSpec, samples
from coalmine.clients.training.table import Table
from coalmine.protocol.dpsgd.terms import Terms, terms
from coalmine.protocol.errors import DataError, StudyError, nearest
from coalmine.protocol.randomness import Purpose, stream

if TYPE_CHECKING:
    from coalmine.clients.training.fast.engine import Engine
    from coalmine.clients.training.fast.holder import Holder

PARTITIONS = ("iid", "dirichlet", "class", "user")


@dataclass(frozen=True, eq=False)
class Client:
    """One client's side of a run.

    Attributes:
        number: 0 ... clients - 1. own: its samples. ids: (n,) of them. digest: of its samples.
        test: public samples for accuracy. conditions: when this client, like all others, is there.
    """

    number: int
    terms: Terms
    spec: ModelSpec
    plan: Plan
    execution: Execution
    own: Table
    ids: NDArray[np.int64]
    test: Table
    digest: str
    conditions: Conditions

    def answers(self, round: int) -> bool:
        """Whether it answers in this round: by coins of the seed, the round and this client alone."""
        return self.conditions.answers(str(self.terms.seed).encode(), round, name_of(self.number))

    def engine(self) -> Engine:
        from coalmine.clients.training.fast.build import engine

        return engine(self.spec)

    def holder(self) -> Holder:
        """With all its samples; the caller restores what filterings left of them."""
        from coalmine.clients.training.fast.holder import Holder

        return Holder(
            self.engine(), self.plan, self.own, self.ids, self.terms.universe, self.terms.seed, self.execution
        )


def client(run: Mapping[str, Any], node: Mapping[str, Any]) -> Client:
    """The client that a node is.

    Args:
        run: settings of the run. node: of the node: ``partition-id``; with ``data``, a file of its own whose rows are
            the ids from ``first-id`` on, instead of a part of the run's data.

    Raises:
        InputError: settings that are missing or do not fit.
    """
    number = node.get("partition-id")
    if not isinstance(number, int) or isinstance(number, bool):
        raise StudyError(
            "this node has no partition-id", where="node-config", remedy='start it with --node-config "partition-id=0"'
        )
    return _client(tuple(sorted(run.items())), number, str(node.get("data", "")), int(node.get("first-id", 0)))


@lru_cache(maxsize=1024)
def _client(run: tuple[tuple[str, Any], ...], number: int, file: str, first: int) -> Client:
    settings = dict(run)
    agreed = terms(settings)
    if not 0 <= number < agreed.clients:
        raise StudyError(f"client {number} of {agreed.clients}", where="partition-id", remedy="needs 0 to clients - 1")
    everything = _samples(source(settings))
    if file:
        own = table_files.load(Path(file), classes=everything.test.classes)
        if own.shape != everything.test.shape:
            raise DataError(f"samples of shape {own.shape}", where=file, remedy=f"needs {everything.test.shape}")
        ids = np.arange(first, first + len(own), dtype=np.int64)
    else:
        if len(everything.train) != agreed.universe:
            raise StudyError(
                f"{agreed.universe} sample ids for {len(everything.train)} samples",
                where="training.universe",
                remedy=f"needs {len(everything.train)}",
            )
        ids = parts(everything.train, settings)[number]
        own = everything.train.take(ids)
    plan = Plan(agreed.mechanism, agreed.steps, agreed.optimiser, agreed.filter)
    return Client(
        number,
        agreed,
        model(settings, everything.test),
        plan,
        Execution(double=bool(settings.get("double", True)), device="cpu"),
        own,
        ids,
        everything.test,
        own.digest,
        coming(settings),
    )


@lru_cache(maxsize=4)
def _samples(spec: SourceSpec) -> Samples:
    return samples(spec)


def name_of(number: int) -> str:
    """What a client is called in a trace and in messages."""
    return f"client {number}"


def coming(settings: Mapping[str, Any]) -> Conditions:
    """How the run's clients come and go.

    Raises:
        StudyError: as :func:`coalmine.clients.population.settings.conditions`.
        DataError: a trace that cannot be read or names no client.
    """
    population = sorted((key, value) for key, value in settings.items() if key.startswith(PREFIX))
    return _coming(tuple(population), int(settings["clients"]))


@lru_cache(maxsize=4)
def _coming(population: tuple[tuple[str, Any], ...], clients: int) -> Conditions:
    found = conditions(dict(population))
    if isinstance(found.availability, Trace):
        names = [name_of(number) for number in range(clients)]
        found.availability.check(names, "clients", f"{names[0]!r} to {names[-1]!r}")
    return found


def source(settings: Mapping[str, Any]) -> SourceSpec:
    """Where the samples come from.

    Raises:
        StudyError: an unknown key or a value of the wrong type.
    """
    known = {field.name: field for field in fields(SourceSpec)}
    given = {key.removeprefix("data."): value for key, value in settings.items() if key.startswith("data.")}
    for key, value in given.items():
        if key not in known:
            raise StudyError("this key is not known", where=f"data.{key}", remedy=nearest(key, known))
        wanted = type(known[key].default)
        if not isinstance(value, wanted) and not (wanted is float and isinstance(value, int)):
            raise StudyError(f"{value!r} is not allowed", where=f"data.{key}", remedy=f"needs a {wanted.__name__}")
    return SourceSpec(**{"seed": int(settings.get("seed", 0)), **given})


def model(settings: Mapping[str, Any], like: Table) -> ModelSpec:
    """The network for samples like these.

    Raises:
        ModelError, StudyError: an unknown network, or one that cannot read these samples.
    """
    kind, activation = (
        str(settings.get(f"model.{key}", word)) for key, word in (("kind", "mlp"), ("activation", "tanh"))
    )
    for word, known, key in ((kind, Kind, "kind"), (activation, Activation, "activation")):
        if word not in list(known):
            raise StudyError(f"{word!r} is not known", where=f"model.{key}", remedy=nearest(word, known))
    hidden = str(settings.get("model.hidden", "32"))
    if not all(width.strip().isdigit() for width in hidden.split(",")):
        raise StudyError(f"{hidden!r} is not allowed", where="model.hidden", remedy="needs widths such as '64,32'")
    return ModelSpec(
        Kind(kind),
        like.shape,
        like.classes,
        tuple(int(width) for width in hidden.split(",")),
        Activation(activation),
        int(settings.get("model.width", 16)),
    )


def parts(data: Table, settings: Mapping[str, Any]) -> partitions.Parts:
    """Who holds which samples.

    Raises:
        DataError, StudyError: an unknown partition, or one that these data do not allow.
    """
    clients, rng = int(settings["clients"]), stream(int(settings["seed"]), Purpose.PARTITION)
    kind = str(settings.get("partition.kind", "iid"))
    match kind:
        case "iid":
            return partitions.iid(data, clients, rng)
        case "dirichlet":
            alpha, empty = (
                float(settings.get("partition.alpha", 1.0)),
                bool(settings.get("partition.allow_empty", False)),
            )
            return partitions.dirichlet(data, clients, alpha, rng, allow_empty=empty)
        case "class":
            return partitions.by_class(data, clients, int(settings.get("partition.classes", 1)), rng)
        case "user":
            found = partitions.by_user(data)
            if len(found) != clients:
                raise StudyError(
                    f"{clients} clients for {len(found)} users", where="training.clients", remedy=f"needs {len(found)}"
                )
            return found
    raise StudyError(f"{kind!r} is not known", where="partition.kind", remedy=nearest(kind, PARTITIONS))
