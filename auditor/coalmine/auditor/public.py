"""Users that the auditor may know: auxiliary users for the design, calibration users for the threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.route import Routes, reroute, route_retained
from coalmine.protocol.tally import Votes, tally


@dataclass(frozen=True)
class PublicUsers:
    """Embedded records of public users, routed once over the part of the bank that no attack touches.

    Attributes:
        records: (rows, d). offsets: (n + 1,) user u holds rows ``offsets[u] : offsets[u + 1]``.
        retained: routes over the bank without the probe positions.
    """

    records: NDArray[np.float32]
    offsets: NDArray[np.int64]
    retained: Routes
    mechanism: Mechanism
    bits: int
    threads: int

    def votes(self, probes: NDArray[np.float32], positions: NDArray[np.int64]) -> Votes:
        """Their clipped votes over the retained bank with ``probes`` at ``positions``."""
        routes = reroute(self.retained, self.records, probes, positions, threads=self.threads)
        return tally(routes, self.offsets, self.mechanism, self.bits)

    def votes_on_pool(self, pool: NDArray[np.float32], bank_size: int) -> NDArray[np.float64]:
        """Their clipped votes on M pool items over the retained bank with the whole pool appended: (n, M)."""
        positions = np.arange(bank_size, bank_size + len(pool))
        return self.votes(pool, positions).on(positions, bank_size + len(pool))


def public_users(
    records: NDArray[np.float32],
    offsets: NDArray[np.int64],
    candidates: NDArray[np.float32],
    positions: NDArray[np.int64],
    mechanism: Mechanism,
    bits: int,
    threads: int,
) -> PublicUsers:
    """Route public users over the bank without ``positions``.

    Args:
        candidates: (p, d) the base bank. positions: (r,) ascending, reserved for probes. threads: speed only.
    """
    retained = route_retained(records, candidates, mechanism.votes_per_record, positions, threads=threads)
    return PublicUsers(records, offsets, retained, mechanism, bits, threads)
