"""Canaries as users of their own: who gives their beginnings, who is put in, which reference sees whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from coalmine.auditor.disclosure.echo_canaries import Recipe, SuffixModel, make_canaries
from coalmine.clients.data.assignment import Assigned, Design, assign
from coalmine.clients.data.users import User, UserTable
from coalmine.deploy.synthesis.order import CanaryOrder
from coalmine.protocol.errors import DataError
from coalmine.protocol.randomness import Purpose, stream

_LARGEST_SHARE = 0.5


@dataclass(frozen=True)
class Inserted:
    """Canaries among the users.

    Attributes:
        others: the users without those who gave beginnings, in the order of the table.
        assigned: the canaries, drawn like users: coins, or exactly a share of them.
        parts: for every reference the canaries it sees; all of them are divided at random.
    """

    others: UserTable
    assigned: Assigned = field(repr=False)
    parts: tuple[tuple[User, ...], ...] = field(repr=False)


def insert(table: UserTable, order: CanaryOrder, model: SuffixModel, design: Design, p: float, seed: int) -> Inserted:
    """Make canaries from the records of users who then belong to neither split.

    Raises:
        DataError: more than half of the users would be needed for beginnings, or no suffix fits.
    """
    rng = stream(seed, Purpose.CANARY, user="beginnings")
    shuffled = [table.users[index] for index in rng.permutation(len(table.users))]
    able = list(accumulate(sum(len(text.split()) >= order.prefix for text in user.records) for user in shuffled))
    # Records of one person may begin alike, so a few more are taken than are needed.
    needed = int(np.searchsorted(able, 1.1 * order.count + 5)) + 1
    if needed > _LARGEST_SHARE * len(shuffled):
        raise DataError(
            f"{order.count} canaries would take the records of {min(needed, len(shuffled))} of {len(shuffled)} users",
            where="canaries",
            remedy="fewer canaries, a shorter prefix, or more users",
        )
    givers = shuffled[:needed]
    recipe = Recipe(order.prefix, order.suffix, order.perplexity)
    records = [(text, label) for user in givers for text, label in zip(user.records, user.labels, strict=True)]
    made = make_canaries([text for text, _ in records], order.count, model, recipe, rng)
    canaries = tuple(
        # The label of the record that it begins like: a label of its own would be asked for, and lead to it.
        User(f"canary-{number:06d}", (text,) * order.repetitions, (records[source][1],) * order.repetitions)
        for number, (text, source) in enumerate(made)
    )
    taken = {user.id for user in givers}
    others = UserTable(tuple(user for user in table.users if user.id not in taken), table.source)
    if {user.id for user in others.users} & {user.id for user in canaries}:
        raise DataError("a user is called like a canary", where=table.source, remedy="rename the user")
    assigned = assign(
        UserTable(canaries, "canaries"), design, p, int(stream(seed, Purpose.CANARY, user="assignment").integers(2**62))
    )
    shares = np.array_split(
        stream(seed, Purpose.CANARY, user="references").permutation(len(canaries)), max(1, order.references)
    )
    parts = tuple(tuple(canaries[index] for index in sorted(share)) for share in shares)
    return Inserted(others, assigned, parts[: order.references])
