"""Generated people with stable traits: any number of users without anybody's data.

A person depends on (seed, index) alone, and so do its texts one after the other: more users, or more records of each,
never change what was there. Names, towns and jobs come from Faker, so another release of Faker gives other people (the
data set's digest tells). E-mail addresses and telephone numbers are of the kinds reserved for fiction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from coalmine.clients.data import persona_words as words
from coalmine.clients.data.users import User, UserTable
from coalmine.protocol.errors import DataError
from coalmine.protocol.randomness import Purpose, stream

if TYPE_CHECKING:
    from faker import Faker

MAX_RECORDS = 1000

_T = TypeVar("_T")
_MAX_CLAUSES = 3
# Draws of a text: opener, closer, mention and emoji, then for every clause its template and up to six slots.
_FIXED, _PER_CLAUSE = 4, 7
_DRAWS = _FIXED + _MAX_CLAUSES * _PER_CLAUSE
_EMOJI_RATE = 0.6
_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class PersonasSource:
    """Generated users.

    Attributes:
        users: how many, >= 1.
        records_per_user: different texts of each, in [1, 1000].
        seed: two seeds give two unrelated populations.

    Raises:
        DataError: a number out of its range.
    """

    users: int
    records_per_user: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        if self.users < 1:
            raise DataError(f"{self.users} personas", where="users", remedy="at least 1")
        if not 1 <= self.records_per_user <= MAX_RECORDS:
            raise DataError(
                f"{self.records_per_user} records per persona", where="records_per_user", remedy=f"1 to {MAX_RECORDS}"
            )


@dataclass(frozen=True)
class Style:
    """How a person writes.

    Attributes:
        lower: everything in small letters.
        joint, ending: between and after sentences.
        emoji: favourites; empty for those who use none.
        openers, closers: favourite phrases.
        clauses: 1 (terse) to 3 (talkative).
        habit: chance of an opener, and of a closer, per text.
        candour: chance of a personal detail per text.
    """

    lower: bool
    joint: str
    ending: str
    emoji: tuple[str, ...]
    openers: tuple[str, ...]
    closers: tuple[str, ...]
    clauses: int
    habit: float
    candour: float


@dataclass(frozen=True)
class Persona:
    """A generated person.

    Attributes:
        id: "persona-000017".
        topic: its community, a key of ``persona_words.TOPICS``; the label of all its records.
        things: what it mostly talks about.
        details: personal details by kind: name, email, phone, city, job, pet, kind (of pet).
    """

    id: str
    topic: str
    things: tuple[str, ...]
    style: Style
    details: dict[str, str]


def write_personas(source: PersonasSource) -> UserTable:
    """All users of the source; records are different texts within each user."""
    users = []
    for index in range(source.users):
        person, rng = _invent(source.seed, index)
        records = tuple(_first_different(_texts(person, rng), source.records_per_user))
        users.append(User(person.id, records, (person.topic,) * len(records)))
    return UserTable(tuple(users), f"personas (seed {source.seed})")


def persona(seed: int, index: int) -> Persona:
    """The person (seed, index), index >= 0: whose details an audit looks for."""
    return _invent(seed, index)[0]


def _invent(seed: int, index: int) -> tuple[Persona, np.random.Generator]:
    """The person and the rest of its stream, from which its texts are drawn."""
    id = f"persona-{index:06d}"
    rng = stream(seed, Purpose.DATA, user=id)
    topic = _one(rng, tuple(words.TOPICS))
    joint, ending = _one(rng, words.PUNCTUATION)
    style = Style(
        lower=bool(rng.random() < 0.35),
        joint=joint,
        ending=ending,
        emoji=_some(rng, words.EMOJI, 3) if rng.random() < 0.5 else (),
        openers=_some(rng, words.OPENERS, 2),
        closers=_some(rng, words.CLOSERS, 2),
        clauses=int(rng.integers(1, _MAX_CLAUSES + 1)),
        habit=float(rng.uniform(0.1, 0.6)),
        candour=float(rng.uniform(0.03, 0.25)),
    )
    return Persona(id, topic, _some(rng, words.TOPICS[topic].things, 4), style, _details(rng)), rng


def _details(rng: np.random.Generator) -> dict[str, str]:
    fake = _faker()
    fake.seed_instance(int(rng.integers(2**63)))
    first, last = fake.first_name(), fake.last_name()
    host = _one(rng, ("example.org", "example.com", "example.net"))
    return {
        "name": f"{first} {last}",
        "email": f"{re.sub('[^a-z.]', '', f'{first}.{last}'.lower())}{rng.integers(1, 100)}@{host}",
        "phone": f"({_one(rng, words.AREA_CODES)}) 555-01{rng.integers(100):02d}",
        "city": fake.city(),
        "job": fake.job().lower(),
        "pet": _one(rng, words.PET_NAMES),
        "kind": _one(rng, words.PETS),
    }


@cache
def _faker() -> Faker:
    """Costs 0.1 s; seeded anew for every person, so that sharing it shares nothing else."""
    from faker import Faker

    return Faker("en_US", use_weighting=False)


def _texts(person: Persona, rng: np.random.Generator) -> Iterator[str]:
    """Texts without end. Each takes the same number of draws, whatever it says."""
    manner = _manner(person)
    while True:
        for draws in rng.random((32, _DRAWS)).tolist():
            yield _text(person, manner, draws)


class _Clause(NamedTuple):
    """A template with "%s" for every slot, and what may fill each."""

    template: str
    options: tuple[tuple[str, ...], ...]


class _Manner(NamedTuple):
    """The words a person uses, in its own case."""

    clauses: tuple[_Clause, ...]
    mentions: tuple[str, ...]
    openers: tuple[str, ...]
    closers: tuple[str, ...]


def _manner(person: Persona) -> _Manner:
    def cased(options: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(option.lower() for option in options) if person.style.lower else options

    topic = words.TOPICS[person.topic]
    slots = {
        "deed": topic.deeds,
        "woe": topic.woes,
        "tip": topic.tips,
        # Favourite things come up far more often than the community's others.
        "thing": person.things * 6 + topic.things,
        "other": topic.things,
        "time": words.TIMES,
        "verdict": words.VERDICTS,
        "quality": words.QUALITIES,
        "who": words.PEOPLE,
        "said": words.REMARKS,
        "count": words.COUNTS,
        "units": words.UNITS,
    }
    in_case = {slot: cased(options) for slot, options in slots.items()}
    clauses = tuple(
        _Clause(_SLOT.sub("%s", template), tuple(in_case[slot] for slot in _SLOT.findall(template)))
        for template in cased(words.CLAUSES)
    )
    return _Manner(clauses, cased(words.MENTIONS), cased(person.style.openers), cased(person.style.closers))


def _text(person: Persona, manner: _Manner, draws: Sequence[float]) -> str:
    style = person.style
    opener, closer, mention, emoji = draws[:_FIXED]
    parts = []
    for start in range(_FIXED, _FIXED + style.clauses * _PER_CLAUSE, _PER_CLAUSE):
        clause = _pick(manner.clauses, draws[start])
        fillers = draws[start + 1 : start + 1 + len(clause.options)]
        parts.append(clause.template % tuple(map(_pick, clause.options, fillers)))
    if opener < style.habit:
        parts[0] = f"{_pick(manner.openers, opener / style.habit)}, {parts[0]}"
    if mention < style.candour:
        parts.append(_pick(manner.mentions, mention / style.candour).format_map(person.details))
    if closer < style.habit:
        parts.append(_pick(manner.closers, closer / style.habit))
    text = _joined(parts, style)
    return f"{text} {_pick(style.emoji, emoji / _EMOJI_RATE)}" if style.emoji and emoji < _EMOJI_RATE else text


def _joined(parts: Sequence[str], style: Style) -> str:
    capitals = not style.lower and style.joint[0] in ".!"
    text = ""
    for index, part in enumerate(parts):
        start = part[0].upper() + part[1:] if capitals or (index == 0 and not style.lower) else part
        between = style.joint if index < len(parts) - 1 else style.ending
        text += start + (between.lstrip(".!,") if part.endswith("?") else between)
    return text


def _first_different(texts: Iterator[str], count: int) -> Iterator[str]:
    seen: set[str] = set()
    while len(seen) < count:
        text = next(texts)
        if text not in seen:
            seen.add(text)
            yield text


def _pick(options: Sequence[_T], u: float) -> _T:
    """The option at ``u`` in [0, 1)."""
    return options[int(u * len(options))]


def _one(rng: np.random.Generator, options: Sequence[_T]) -> _T:
    return options[int(rng.integers(len(options)))]


def _some(rng: np.random.Generator, options: Sequence[_T], count: int) -> tuple[_T, ...]:
    return tuple(options[i] for i in rng.choice(len(options), count, replace=False).tolist())
