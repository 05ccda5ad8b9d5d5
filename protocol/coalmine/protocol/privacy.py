"""The vocabulary of privacy statements.

Compatibility law: the meaning of a value never changes. A new adjacency, unit or threat model is a new member, and code
that does not know a member refuses it instead of treating it as another one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from coalmine.protocol.errors import StudyError


class Adjacency(StrEnum):
    """Which two data sets an epsilon compares."""

    ADD_REMOVE = "add/remove"
    ZERO_OUT = "zero-out"
    """Everything a user holds, or nothing; that it takes part, and when, is the same in both."""
    REPLACE_ONE = "replace one"
    """One user is exchanged for another; adding or removing within eps implies exchanging within 2 eps."""


class PrivacyUnit(StrEnum):
    """Whose presence is protected: everything a user holds, or one record."""

    USER = "user"
    RECORD = "record"


class ThreatModel(StrEnum):
    """What the attacker sees."""

    RELEASE_ONLY = "release only"
    """The noisy release and the public bank; the aggregator is trusted, realised cohorts stay hidden."""
    EVERY_UPDATE = "every noised update"
    """All models and noised updates of a training run; who sums and adds the noise is trusted, batches and dropped
    samples stay hidden. Covers an attacker who sees the final model only."""
    COHORT = "releases, aborts and cohorts"
    """The noisy release, the public bank, which rounds were aborted, and who took part; nobody is trusted to add noise,
    participants do not pool what they know. Covers what a user holds, never that it takes part: ``ZERO_OUT``, q = 1."""


class Assurance(StrEnum):
    """How much a number proves.

    FORMAL: holds with the stated confidence for the mechanism that was run, under the stated adjacency.
    EXACT: computed, not sampled, for the modelled mechanism; its numerical error is reported with it.
    HEURISTIC: an indication; proves nothing.
    """

    FORMAL = "formal"
    EXACT = "exact"
    HEURISTIC = "heuristic"


@dataclass(frozen=True)
class Mechanism:
    """The knobs that can change a guarantee, and nothing else.

    Attributes:
        q: Poisson participation rate of a user per round, in (0, 1].
        sigma: noise multiplier, > 0; the noise of one coordinate has standard deviation ``sigma * clip``.
        clip: L2 bound C of one user's vote, > 0.
        delta: in (0, 1).
        votes_per_record: k >= 1, nearest candidates a record votes for.
        max_records: m >= 1, records of a user that count.

    Raises:
        StudyError: a value out of its range.
    """

    q: float = 0.1
    sigma: float = 1.0
    clip: float = 0.1
    delta: float = 1e-5
    votes_per_record: int = 5
    max_records: int = 64

    def __post_init__(self) -> None:
        _require(0 < self.q <= 1, "privacy.q", self.q, "a participation rate in (0, 1]")
        _require(self.sigma > 0 and math.isfinite(self.sigma), "privacy.sigma", self.sigma, "a noise multiplier > 0")
        _require(self.clip > 0 and math.isfinite(self.clip), "privacy.clip", self.clip, "an L2 bound > 0")
        std = self.noise_std
        _require(0 < std < math.inf, "privacy.sigma * privacy.clip", std, "a noise level that is a number > 0")
        _require(0 < self.delta < 1, "privacy.delta", self.delta, "a probability in (0, 1)")
        _require(self.votes_per_record >= 1, "privacy.votes_per_record", self.votes_per_record, "at least 1")
        _require(self.max_records >= 1, "privacy.max_records", self.max_records, "at least 1")

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise on one coordinate, sigma * C."""
        return self.sigma * self.clip


def _require(holds: bool, key: str, value: float, allowed: str) -> None:
    if not holds:
        raise StudyError(f"{value!r} is not allowed", where=key, remedy=f"needs {allowed}")


@dataclass(frozen=True)
class Claim:
    """What the accounting promises for ``rounds`` releases of a subsampled Gaussian.

    Attributes:
        eps_prv: Opacus' PRV accountant as published figures quote it (its default error bound included); not a number
            where that accountant breaks down (very little noise).
        eps_pld_lower, eps_pld_upper: dp-accounting's optimistic and pessimistic privacy-loss distribution. Audits are
            compared with ``eps_pld_upper``, which is infinite where the bracket is not reliable (above 700).
    """

    eps_prv: float
    eps_pld_lower: float
    eps_pld_upper: float
    delta: float
    q: float
    sigma: float
    rounds: int
    adjacency: Adjacency
    unit: PrivacyUnit
    threat_model: ThreatModel
    assurance: Assurance = Assurance.FORMAL
