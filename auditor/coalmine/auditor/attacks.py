"""The eight attacks (arXiv 2609.13499, table 1 and appendix B)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class CanaryKind(StrEnum):
    """Whose presence is tested."""

    REAL = "real user"
    NONCE = "nonce user"


class PoolKind(StrEnum):
    """Where probes come from."""

    NONE = "no probes"
    COPIES = "verbatim copies"
    PARAPHRASES = "paraphrases"
    NONCES = "nonces"


class Selection(StrEnum):
    """How probes are chosen from the pool."""

    NONE = "none"
    ALL = "one per record"
    SPREAD = "spread over records"
    UNIFORM = "uniform"
    NORM = "greedy on votes"
    MU = "greedy on separation"


@dataclass(frozen=True)
class Attack:
    """One way to make a known user's presence visible in a release.

    Attributes:
        idea: one sentence for a reader who has not seen the paper.
    """

    name: str
    canary: CanaryKind
    pool: PoolKind
    selection: Selection
    idea: str


ATTACKS: dict[str, Attack] = {
    attack.name: attack
    for attack in (
        Attack(
            "ordinary",
            CanaryKind.REAL,
            PoolKind.NONE,
            Selection.NONE,
            "Leave the bank as it is and watch the candidates that the canary naturally votes for.",
        ),
        Attack(
            "exact",
            CanaryKind.REAL,
            PoolKind.COPIES,
            Selection.ALL,
            "Plant a verbatim copy of each of the canary's records.",
        ),
        Attack(
            "paraphrase",
            CanaryKind.REAL,
            PoolKind.PARAPHRASES,
            Selection.SPREAD,
            "Plant paraphrases, spread evenly over the canary's records.",
        ),
        Attack(
            "paraphrase-norm",
            CanaryKind.REAL,
            PoolKind.PARAPHRASES,
            Selection.NORM,
            "Plant the paraphrases that collect most of the canary's votes.",
        ),
        Attack(
            "paraphrase-mu",
            CanaryKind.REAL,
            PoolKind.PARAPHRASES,
            Selection.MU,
            "Plant the paraphrases that collect the canary's votes and few votes of other users.",
        ),
        Attack(
            "nonce",
            CanaryKind.NONCE,
            PoolKind.NONCES,
            Selection.UNIFORM,
            "Insert a synthetic user of random strings and plant other random strings.",
        ),
        Attack(
            "nonce-norm",
            CanaryKind.NONCE,
            PoolKind.NONCES,
            Selection.NORM,
            "The same, planting the random strings that collect most of the canary's votes.",
        ),
        Attack(
            "nonce-mu",
            CanaryKind.NONCE,
            PoolKind.NONCES,
            Selection.MU,
            "The same, avoiding random strings that other users vote for.",
        ),
    )
}
