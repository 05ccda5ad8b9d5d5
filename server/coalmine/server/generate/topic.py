"""What the rules know about a subject."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Topic:
    """Words that go together.

    Attributes:
        group: computing, affairs, life, feelings or services.
        agents: who acts, article included.
        things: on what, without article.
        verbs: base forms that take such a thing; a particle may follow ("back up").
        qualities: what a thing may be like.
        places: where or when it happens, preposition included.
    """

    group: str
    agents: tuple[str, ...]
    things: tuple[str, ...]
    verbs: tuple[str, ...]
    qualities: tuple[str, ...]
    places: tuple[str, ...]


def topic(group: str, agents: str, things: str, verbs: str, qualities: str, places: str) -> Topic:
    """A topic from comma-separated lists."""
    lists = (tuple(word.strip() for word in words.split(",")) for words in (agents, things, verbs, qualities, places))
    return Topic(group, *lists)
