"""Rounds of Private Evolution as the server runs them: publish the commitment, then let a cohort be drawn."""

from __future__ import annotations

from collections.abc import Sequence

from coalmine.protocol.bank import Bank, commit
from coalmine.protocol.ports import AuditSink, Population
from coalmine.protocol.release import Release


def run_rounds(rounds: Sequence[int], bank: Bank, population: Population, sink: AuditSink) -> list[Release]:
    """Commit, draw, vote, release; the sink learns each public fact when it becomes public.

    Args:
        rounds: numbers of rounds that all use ``bank``; each has a cohort and a release of its own.

    Raises:
        CommitmentMismatch: the clients refuse; nothing was released.
    """
    commitment = commit(bank)
    for round in rounds:
        sink.committed(round, commitment)
    releases = population.releases(rounds, bank, commitment)
    for release in releases:
        sink.released(release)
    return releases
