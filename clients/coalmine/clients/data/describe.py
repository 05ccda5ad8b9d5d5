"""What a data set looks like, in numbers: no record is quoted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from coalmine.clients.data.rows import Flaw
from coalmine.clients.data.select import distinct_records
from coalmine.clients.data.users import UserTable

SHORT_WORDS = 2
LONG_CHARACTERS = 2000
LABELS_SHOWN = 20
LABELS_BELIEVED = 200
THRESHOLDS = (16, 32, 64)
_LEVELS = {"min": 0.0, "5%": 0.05, "25%": 0.25, "50%": 0.5, "75%": 0.75, "95%": 0.95, "max": 1.0}


@dataclass(frozen=True)
class Description:
    """A data set in numbers.

    Attributes:
        digest: of the data set.
        records_per_user: min, quantiles and max by name; empty without users.
        labels: (label, records) of the most frequent ``LABELS_SHOWN``, most frequent first. Empty where there are more
            than ``LABELS_BELIEVED`` different ones: such a column is hardly a label and may be private text.
        different_labels, unlabelled: number of labels; records without one.
        repeated_within: records that repeat an earlier record of their user.
        repeated_across: different texts that several users hold.
        blank, short, long: records without text; of fewer than ``SHORT_WORDS`` words (not blank); of more than
            ``LONG_CHARACTERS`` characters, of which an encoder reads the beginning only.
        with_controls: records with control characters other than tabs and line breaks.
        users_with_at_least: users by their number of different records, as the splits count them.
        problems: plain sentences; empty where nothing is wrong.
    """

    source: str
    digest: str
    users: int
    records: int
    records_per_user: dict[str, float]
    labels: tuple[tuple[str, int], ...]
    different_labels: int
    unlabelled: int
    repeated_within: int
    repeated_across: int
    blank: int
    short: int
    long: int
    with_controls: int
    users_with_at_least: dict[int, int]
    problems: tuple[str, ...]


def describe(table: UserTable, flaws: Sequence[Flaw] = ()) -> Description:
    """Count what a table holds; ``flaws`` are the rows that could not be read."""
    sizes = [len(user.records) for user in table.users]
    variety = [distinct_records(user) for user in table.users]
    holders = Counter(text for user in table.users for text in set(user.records))
    labels = Counter(label for user in table.users for label in user.labels)
    unlabelled = labels.pop("", 0)
    texts = [text for user in table.users for text in user.records]
    description = Description(
        source=table.source,
        digest=table.digest,
        users=len(table),
        records=len(texts),
        records_per_user={name: float(np.quantile(sizes, level)) for name, level in _LEVELS.items()} if sizes else {},
        labels=tuple(labels.most_common(LABELS_SHOWN)) if len(labels) <= LABELS_BELIEVED else (),
        different_labels=len(labels),
        unlabelled=unlabelled,
        repeated_within=len(texts) - sum(variety),
        repeated_across=sum(count > 1 for count in holders.values()),
        blank=sum(not text.strip() for text in texts),
        short=sum(0 < len(text.split(maxsplit=SHORT_WORDS)) < SHORT_WORDS for text in texts),
        long=sum(len(text) > LONG_CHARACTERS for text in texts),
        with_controls=sum(_has_controls(text) for text in texts),
        users_with_at_least={least: sum(size >= least for size in variety) for least in THRESHOLDS},
        problems=(),
    )
    similar = len(table) - len({user.id.strip().casefold() for user in table.users})
    problems = (*(f"{str(flaw)[0].upper()}{str(flaw)[1:]}." for flaw in flaws), *_problems(description, similar))
    return replace(description, problems=problems)


def _problems(seen: Description, similar_ids: int) -> Iterator[str]:
    if not seen.users:
        yield "No user can be read."
        return
    if seen.blank:
        yield f"Blank records: {seen.blank:,}."
    if similar_ids:
        yield f"User ids that differ from another one in case or outer white space only: {similar_ids:,}."
    if seen.users == 1:
        yield "There is only one user."
    elif seen.records == seen.users:
        yield "Every user has a single record: is this the user column?"
    if seen.users_with_at_least[THRESHOLDS[0]] == 0:
        yield f"No user has {THRESHOLDS[0]} different records or more."
    if seen.different_labels > LABELS_BELIEVED:
        yield f"There are {seen.different_labels:,} different labels: is this the label column?"
    if 0 < seen.unlabelled < seen.records:
        yield f"Records without a label, while others have one: {seen.unlabelled:,}."
    if seen.repeated_within:
        share = seen.repeated_within / seen.records
        yield f"Records that repeat an earlier one of the same user: {seen.repeated_within:,} ({share:.1%})."
    if seen.long:
        yield f"Records over {LONG_CHARACTERS:,} characters, more than an encoder reads: {seen.long:,}."
    if seen.with_controls:
        yield f"Records with control characters, which are kept as they are: {seen.with_controls:,}."


def _has_controls(text: str) -> bool:
    return not text.isprintable() and any((ord(c) < 32 and c not in "\t\n\r") or 127 <= ord(c) < 160 for c in text)
