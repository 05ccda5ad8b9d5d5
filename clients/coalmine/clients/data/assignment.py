"""Which users a generator may learn from and which are held out: the random draw that audits of its output rest on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from coalmine.clients.data.users import User, UserTable
from coalmine.protocol.errors import DataError, StudyError
from coalmine.protocol.randomness import Purpose, stream


class Design(StrEnum):
    """How users are assigned.

    BERNOULLI: each by a coin of its own. FIXED_SIZE: a random set of a size fixed beforehand.
    """

    BERNOULLI = "bernoulli"
    FIXED_SIZE = "fixed-size"


@dataclass(frozen=True)
class Assigned:
    """Train and holdout, each in the order of ids."""

    train: tuple[User, ...]
    holdout: tuple[User, ...]


def assign(table: UserTable, design: Design, p: float, seed: int) -> Assigned:
    """Draw the training users.

    The draw depends on the ids, the seed, the design and p alone, not on the order of the source or on any record.

    Args:
        p: in (0, 1): the probability of training (Bernoulli), or the share of it, rounded to whole users (fixed size).

    Raises:
        StudyError: p out of its range. DataError: nobody to learn from, or nobody held out.
    """
    if not 0 < p < 1:
        raise StudyError(f"a share of {p!r}", where="p", remedy="a number between 0 and 1")
    users = sorted(table.users, key=lambda user: user.id)
    rng = stream(seed, Purpose.ASSIGNMENT)
    if design is Design.BERNOULLI:
        chosen = rng.random(len(users)) < p
    else:
        chosen = np.zeros(len(users), bool)
        chosen[rng.choice(len(users), round(p * len(users)), replace=False)] = True
    if chosen.all() or not chosen.any():
        raise DataError(
            f"of {len(users)} users all fall on one side", where=table.source, remedy="more users, or p nearer to 0.5"
        )
    return Assigned(
        tuple(user for user, train in zip(users, chosen, strict=True) if train),
        tuple(user for user, train in zip(users, chosen, strict=True) if not train),
    )
