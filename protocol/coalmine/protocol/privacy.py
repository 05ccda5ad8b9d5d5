"""The vocabulary of privacy statements.

Compatibility law: the meaning of a value never changes. A new adjacency, unit or threat model is a new member, and code
that does not know a member refuses it instead of treating it as another one.
"""

from __future__ import annotations

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


LEAST_RATE = 1e-12
LEAST_NOISE, MOST_NOISE = 1e-9, 1e6
LEAST_BOUND, MOST_BOUND = 1e-9, 1e6
LEAST_DELTA = 1e-100
"""Beyond these, floating point breaks down in the accounting or in the attacks; no honest mechanism comes near."""


@dataclass(frozen=True)
class Mechanism:
    """The knobs that can change a guarantee, and nothing else.

    Attributes:
        q: Poisson participation rate of a user per round, in (0, 1], at least 1e-12.
        sigma: noise multiplier, 1e-9 to 1e6; the noise of one coordinate has standard deviation ``sigma * clip``.
        clip: L2 bound C of one user's vote, 1e-9 to 1e6.
        delta: in (0, 1), at least 1e-100.
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
        require_in_range("privacy", self.q, self.sigma, self.clip, self.delta, "participation")
        _require(self.votes_per_record >= 1, "privacy.votes_per_record", self.votes_per_record, "at least 1")
        _require(self.max_records >= 1, "privacy.max_records", self.max_records, "at least 1")

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise on one coordinate, sigma * C."""
        return self.sigma * self.clip


def require_in_range(section: str, q: float, sigma: float, clip: float, delta: float, what: str) -> None:
    """The numbers that every subsampled Gaussian has.

    Args:
        section: of the study, for the key that is named. what: q is the rate of.

    Raises:
        StudyError: a value out of its range.
    """
    _require(LEAST_RATE <= q <= 1, f"{section}.q", q, f"a {what} rate in (0, 1], at least {LEAST_RATE:g}")
    _require(
        LEAST_NOISE <= sigma <= MOST_NOISE,
        f"{section}.sigma",
        sigma,
        f"a noise multiplier > 0, from {LEAST_NOISE:g} to {MOST_NOISE:g}",
    )
    _require(
        LEAST_BOUND <= clip <= MOST_BOUND,
        f"{section}.clip",
        clip,
        f"an L2 bound > 0, from {LEAST_BOUND:g} to {MOST_BOUND:g}",
    )
    _require(LEAST_DELTA <= delta < 1, f"{section}.delta", delta, f"a probability in (0, 1), at least {LEAST_DELTA:g}")


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
