"""The worst disclosures as pairs of texts. Private: shown only to who asks, never published, never tracked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.disclosure.feature_class import Matches, Material, Similarities
from coalmine.auditor.disclosure.overlap import Overlap, overlap
from coalmine.auditor.disclosure.result import WitnessShape

_RECORDS_EACH = 200
"""Records of a user among which the one to show is chosen."""


@dataclass(frozen=True)
class Lead:
    """Where a disclosure is to be found.

    Attributes:
        user: index of a training user. synthetic: index of a record of the output.
        matches, cosine: how strong it is. feature: what they share, where the class knows.
    """

    user: int
    synthetic: int
    matches: int | None = None
    cosine: float | None = None
    feature: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Witness:
    """One pair of texts.

    Attributes:
        shape: what may be published of it. texts: both, in shared and other pieces.
    """

    shape: WitnessShape
    texts: Overlap = field(repr=False)
    feature: str | None = field(repr=False)


def leads_of_matches(found: Matches, train: NDArray[np.bool_], most: int) -> list[Lead]:
    """The training users with most matches, each with its longest feature."""
    each = found.per_user(len(train))
    leads = []
    for user in np.argsort(-(each * train), kind="stable")[:most].tolist():
        if each[user] == 0 or not train[user]:
            break
        held = np.flatnonzero((found.holders == user).any(axis=1)).tolist()
        longest = max(held, key=lambda index: len(found.features[index]))
        leads.append(Lead(user, int(found.synthetic[longest]), int(each[user]), None, found.features[longest]))
    return leads


def leads_of_similarities(found: Similarities, train: NDArray[np.bool_], most: int) -> list[Lead]:
    """The training users to whom the output comes closest."""
    score = np.where(train & ~np.isnan(found.nearest[:, 0]), found.nearest[:, 0], -np.inf)
    best = [int(user) for user in np.argsort(-score, kind="stable")[:most] if np.isfinite(score[user])]
    return [Lead(user, int(found.synthetic[user]), cosine=float(score[user])) for user in best]


def witnesses(material: Material, leads: Sequence[Sequence[Lead]]) -> list[tuple[Witness, ...]]:
    """The texts behind leads, one group per class, in one pass over each side.

    Of a user's records the one with the longest run of words in common with the synthetic record is shown.
    """
    wanted = [lead for group in leads for lead in group]
    theirs = _of_users(material, {lead.user for lead in wanted})
    outputs = _at(material.synthetic(), {lead.synthetic for lead in wanted})
    return [tuple(_witness(lead, theirs[lead.user], outputs[lead.synthetic]) for lead in group) for group in leads]


def _of_users(material: Material, users: set[int]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {user: [] for user in users}
    if users:
        for entry in material.private():
            if entry.user in found and len(found[entry.user]) < _RECORDS_EACH:
                found[entry.user].append(entry.text)
    return found


def _at(texts: Iterable[str], places: set[int]) -> dict[int, str]:
    if not places:
        return {}
    return {index: text for index, text in enumerate(texts) if index in places}


def _witness(lead: Lead, records: list[str], synthetic: str) -> Witness:
    shown = max((overlap(record, synthetic) for record in records), key=lambda both: both.longest)
    shape = WitnessShape(
        lead.synthetic + 1,
        lead.matches,
        lead.cosine,
        shown.longest,
        tuple((len(piece.text.split()), piece.shared) for piece in shown.left),
        tuple((len(piece.text.split()), piece.shared) for piece in shown.right),
    )
    return Witness(shape, shown, lead.feature)
