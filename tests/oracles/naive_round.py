"""One round, client by client, with nothing shared and nothing cached."""

import numpy as np

from coalmine.protocol.ballot import Ballot
from coalmine.protocol.bank import commit
from coalmine.protocol.randomness import participates
from coalmine.protocol.vote import vote


def ballot(bank, encoder, positions):
    return Ballot(bank, commit(bank), encoder.encode(bank.texts), np.asarray(positions, np.int64))


def noise_free_sum(users, ballot, mechanism, bits, key, round):
    """``users``: (id, embedded records) pairs."""
    total = np.zeros(len(ballot.bank), np.int64)
    for name, records in users:
        if participates(key, round, name, mechanism.q):
            total += vote(records, ballot.candidates, mechanism, bits)
    return total
