"""What an auditor declares before looking."""

from __future__ import annotations

from dataclasses import dataclass

from coalmine.auditor.disclosure.user_match import Rule
from coalmine.protocol.errors import StudyError

_MOST_HOLDERS = 10**9


@dataclass(frozen=True)
class Settings:
    """Declared beforehand; verdicts rest on it.

    Attributes:
        ks: 1 to 10^9 holders of a rare feature; the first counts for the verdict, the others are a sweep.
        rarities: shares of users, rarest first; the first counts for the verdict, the others are a sweep.
        alpha: level of every bound, and of all verdicts together.
        delta: of the user-match bound.
        claimed_eps: an epsilon that the generator claims, to be tested.
        rule: how many users are guessed by similarity. guess_share: of all users, for ``Rule.DECLARED``.
        grid: the shares tried by ``Rule.GRID``.
        seed: of ties, splits and permutations.
        witnesses: pairs of texts per class.

    Raises:
        StudyError: a value out of its range.
    """

    ks: tuple[int, ...] = (1,)
    rarities: tuple[float, ...] = (0.05, 0.1, 0.5)
    alpha: float = 0.05
    delta: float = 0.0
    claimed_eps: float | None = None
    rule: Rule = Rule.DECLARED
    guess_share: float = 0.05
    grid: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.2)
    seed: int = 0
    witnesses: int = 5

    def __post_init__(self) -> None:
        counts = bool(self.ks) and all(1 <= k <= _MOST_HOLDERS for k in self.ks)
        _require(counts, "k", self.ks, f"whole numbers from 1 to {_MOST_HOLDERS:,}")
        _require(len(set(self.ks)) == len(self.ks), "k", self.ks, "different numbers")
        shares = bool(self.rarities) and all(0 < share <= 1 for share in self.rarities)
        _require(shares and len(set(self.rarities)) == len(self.rarities), "rarity", self.rarities, "shares in (0, 1]")
        _require(0 < self.alpha < 1, "alpha", self.alpha, "a level in (0, 1)")
        _require(0 <= self.delta < 1, "delta", self.delta, "a probability in [0, 1)")
        _require(self.claimed_eps is None or 0 <= self.claimed_eps <= 100, "eps", self.claimed_eps, "0 to 100")
        _require(0 < self.guess_share <= 1, "guess share", self.guess_share, "a share in (0, 1]")
        _require(all(0 < share <= 1 for share in self.grid) and bool(self.grid), "grid", self.grid, "shares in (0, 1]")
        _require(self.delta == 0 or self.rule is Rule.DECLARED, "delta", self.delta, "declared guesses")
        _require(self.witnesses >= 0, "witnesses", self.witnesses, "0 or more")


def _require(holds: bool, key: str, value: object, allowed: str) -> None:
    if not holds:
        raise StudyError(f"{value!r} is not allowed", where=key, remedy=f"needs {allowed}")
