"""The numbers of a disclosure audit that every reader needs, one row per class; and as records for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coalmine.auditor.disclosure.result import ClassAudit, ClassTests, DisclosureAudit, Kind


@dataclass(frozen=True)
class Row:
    """One class.

    Attributes:
        counted: what is counted. total, train: how many, and in train; ``None`` where nothing could be counted.
        expected: in train by chance.
        p_value, p_holm: the smallest of the declared tests, raw and corrected.
        p_hat: lower bound on the rate at which holders of a match (or guessed users) are in train.
        eps_feature, eps_user: lower bounds by feature match (exact law) and by user match.
        auc: of the scores.
    """

    name: str
    counted: str
    total: int | None
    train: int | None
    expected: float | None
    p_value: float | None
    p_holm: float | None
    p_hat: float | None
    eps_feature: float | None
    eps_user: float | None
    auc: float | None
    verdict: str

    @property
    def holdout(self) -> int | None:
        """Phantoms, for discrete classes."""
        return None if self.total is None or self.train is None else self.total - self.train


def rows(audit: DisclosureAudit) -> tuple[Row, ...]:
    """One row per class, in the order of the audit."""
    return tuple(_row(one, audit.p) for one in audit.classes)


def _row(one: ClassAudit, p: float) -> Row:
    match = one.tests.sweeps[0].match if one.tests.sweeps else None
    guessed = one.tests.user_match
    total = train = None
    if match is not None:
        total, train = match.matches, match.train
    elif one.kind is Kind.SIMILARITY and guessed is not None:
        total, train = guessed.guesses, guessed.correct
    return Row(
        name=one.name,
        counted="matches" if one.kind is Kind.DISCRETE else "guesses",
        total=total,
        train=train,
        expected=None if total is None else total * p,
        p_value=min((test.p_value for test in one.declared), default=None),
        p_holm=min((test.p_holm for test in one.declared), default=None),
        p_hat=None if match is None else match.hoeffding.p_hat,
        eps_feature=None if match is None else match.eps_lower,
        eps_user=None if guessed is None else guessed.eps_lower,
        auc=None if one.tests.roc is None else one.tests.roc.auc,
        verdict=one.verdict.value,
    )


def records(audit: DisclosureAudit) -> list[dict[str, Any]]:
    """One plain record per class and test, with and without inserted canaries."""
    found = []
    for one in audit.classes:
        for users, tests in (("all", one.tests), ("without canaries", one.without_canaries)):
            if tests is not None:
                found += [{"class": one.name, "users": users, **record} for record in _records(tests)]
    return found


def _records(tests: ClassTests) -> list[dict[str, Any]]:
    empty: dict[str, Any] = dict.fromkeys(("total", "train", "p_value", "p_hat", "eps_lower", "method", "auc"))
    found = []
    for sweep in tests.sweeps:
        record = {"test": f"feature match, k = {sweep.k}", **empty, "total": sweep.features * sweep.k}
        if (match := sweep.match) is not None:
            record |= {"train": match.train, "p_value": match.p_value, "p_hat": match.hoeffding.p_hat}
            record |= {"total": match.matches, "eps_lower": match.eps_lower, "method": match.method}
        found.append(record)
    for two in tests.two_samples:
        found.append(
            {"test": f"two-sample, rarest {two.quantile:g}", **empty, "total": two.train + two.holdout}
            | {"train": two.train, "p_value": two.p_value, "method": "permutation"}
        )
    if (guessed := tests.user_match) is not None:
        found.append(
            {"test": "user match", **empty, "total": guessed.guesses, "train": guessed.correct}
            | {"p_value": guessed.p_value, "eps_lower": guessed.eps_lower, "method": guessed.rule.value}
        )
    if (curve := tests.roc) is not None:
        found.append(
            {"test": "area under the curve", **empty, "p_value": curve.p_value, "method": curve.method}
            | {"total": curve.train + curve.holdout, "train": curve.train, "auc": curve.auc}
        )
    return found
