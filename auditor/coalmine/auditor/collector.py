"""The auditor's ear: takes what the server publishes and checks its order."""

from __future__ import annotations

import numpy as np

from coalmine.protocol.bank import Commitment
from coalmine.protocol.errors import ProtocolError
from coalmine.protocol.release import Release


class Collector:
    """An in-process ``AuditSink``."""

    def __init__(self) -> None:
        self._commitments: dict[int, Commitment] = {}
        self._releases: list[Release] = []
        self._released: set[int] = set()

    def committed(self, round: int, commitment: Commitment) -> None:
        """Note a commitment.

        Raises:
            ProtocolError: the round was committed before.
        """
        if round in self._commitments:
            raise ProtocolError("a second commitment for the same round", where=f"round {round}")
        self._commitments[round] = commitment

    def released(self, release: Release) -> None:
        """Note a release.

        Raises:
            ProtocolError: no commitment came before it, it does not fit the one that did, or it is not the first.
        """
        where = f"round {release.round}"
        commitment = self._commitments.get(release.round)
        if commitment is None:
            raise ProtocolError("a release without a commitment before it", where=where)
        if release.commitment != commitment or release.histogram.shape != (commitment.size,):
            raise ProtocolError("the release does not belong to the committed bank", where=where)
        if not np.isfinite(release.histogram).all():
            raise ProtocolError("the release holds a value that is not finite", where=where)
        if release.round in self._released:
            raise ProtocolError("a second release of the same round, which is a second disclosure", where=where)
        self._released.add(release.round)
        self._releases.append(release)

    def take(self) -> list[Release]:
        """The releases since the last call."""
        taken, self._releases = self._releases, []
        return taken
