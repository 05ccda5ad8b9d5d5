"""What a disclosure audit found. Everything here may be published: no private text, no user name.

What a person may want to look at, private text beside synthetic text, is in :mod:`witness` and stays apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from coalmine.auditor.disclosure.assignment import AssignmentKind
from coalmine.auditor.disclosure.feature_match import FeatureMatch
from coalmine.auditor.disclosure.power import Power
from coalmine.auditor.disclosure.roc import Roc
from coalmine.auditor.disclosure.two_sample import TwoSample
from coalmine.auditor.disclosure.user_match import UserMatch
from coalmine.protocol.privacy import Adjacency, Assurance, PrivacyUnit


class DisclosureVerdict(StrEnum):
    """What can be said of one class. There is no member "safe": that nothing was found proves nothing."""

    LEAKS = "leaks"
    NO_EVIDENCE = "no evidence at this power"
    TOO_LITTLE = "too little evidence to say"


class Kind(StrEnum):
    """Features that a text has or has not, or closeness of embeddings."""

    DISCRETE = "discrete"
    SIMILARITY = "similarity"


@dataclass(frozen=True)
class Sweep:
    """Features held by exactly k users that are in the synthetic output.

    Attributes:
        features: l.
        match: ``None`` where l = 0: without matches the test is vacuous.
    """

    k: int
    features: int
    match: FeatureMatch | None


@dataclass(frozen=True)
class ClassTests:
    """All tests of one class on one set of users.

    Attributes:
        sweeps: one per k, the declared one first; empty for similarity.
        two_samples: one per rarity quantile, the declared one first; empty for discrete features.
    """

    sweeps: tuple[Sweep, ...]
    two_samples: tuple[TwoSample, ...]
    user_match: UserMatch | None
    roc: Roc | None


@dataclass(frozen=True)
class DeclaredTest:
    """A test that counts for the verdict, fixed before anything was seen.

    Attributes:
        p_value: raw. p_holm: corrected for all declared tests of the audit; the verdict uses this one.
        towards_train: whether the difference is in the direction of a leak.
    """

    name: str
    p_value: float
    p_holm: float
    towards_train: bool = True

    def rejects(self, alpha: float) -> bool:
        return self.p_holm <= alpha and self.towards_train


@dataclass(frozen=True)
class WitnessShape:
    """A pair of private and synthetic text without the text.

    Attributes:
        synthetic: number of the synthetic record, from 1. matches: features that its user shares with the output.
        cosine: for similarity. overlap: words of the longest common run.
        private, output: both texts as stretches of (words, in common or not).
    """

    synthetic: int
    matches: int | None
    cosine: float | None
    overlap: int
    private: tuple[tuple[int, bool], ...]
    output: tuple[tuple[int, bool], ...]

    @property
    def private_words(self) -> int:
        return sum(words for words, _ in self.private)

    @property
    def synthetic_words(self) -> int:
        return sum(words for words, _ in self.output)


@dataclass(frozen=True)
class ClassAudit:
    """One class of features.

    Attributes:
        notes: how features were found (a fallback, a missing model).
        declared: the tests behind the verdict.
        reasons: the verdict in plain sentences.
        claim_p_value: of the claimed epsilon, ``None`` without a claim or without matches.
        without_canaries: the tests repeated without inserted canaries.
    """

    name: str
    kind: Kind
    notes: tuple[str, ...]
    tests: ClassTests
    declared: tuple[DeclaredTest, ...]
    power: Power
    verdict: DisclosureVerdict
    reasons: tuple[str, ...]
    claim_p_value: float | None = None
    without_canaries: ClassTests | None = None
    witnesses: tuple[WitnessShape, ...] = ()


@dataclass(frozen=True)
class DisclosureAudit:
    """Everything that one disclosure audit shows.

    Attributes:
        alpha: level of every bound, and of all verdicts together (Holm).
        delta: of the user-match bound; feature-match bounds are for delta = 0.
        claimed_eps, claim_contradicted: an epsilon that was claimed, and whether some class contradicts it (Holm over
            the classes); ``None`` without a claim.
        canaries: inserted canary users (train, holdout), ``None`` without any.
        warnings: what a reader must know about the data.
        facts: further public facts. seconds: wall-clock seconds by stage.
    """

    name: str
    users: int
    train: int
    holdout: int
    private_records: int
    synthetic_records: int
    assignment: AssignmentKind
    p: float
    adjacency: Adjacency
    unit: PrivacyUnit
    assurance: Assurance
    alpha: float
    delta: float
    classes: tuple[ClassAudit, ...]
    claimed_eps: float | None = None
    claim_contradicted: bool | None = None
    canaries: tuple[int, int] | None = None
    warnings: tuple[str, ...] = ()
    facts: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def verdict(self) -> DisclosureVerdict:
        """Of all classes together: one leak is a leak, and silence needs every class to have had power."""
        verdicts = {one.verdict for one in self.classes}
        for worst in (DisclosureVerdict.LEAKS, DisclosureVerdict.TOO_LITTLE):
            if worst in verdicts:
                return worst
        return DisclosureVerdict.NO_EVIDENCE
