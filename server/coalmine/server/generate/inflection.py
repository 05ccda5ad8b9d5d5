"""English word forms, as far as the vocabulary of the rules needs them."""

from __future__ import annotations

from functools import cache

_PAST = {
    "back up": "backed up", "beat": "beat", "bite": "bit", "break": "broke", "build": "built", "burn": "burned",
    "buy": "bought", "choose": "chose", "cut": "cut", "drink": "drank", "drive": "drove", "eat": "ate", "feed": "fed",
    "fight": "fought", "find": "found", "forget": "forgot", "forgive": "forgave", "get": "got", "give": "gave",
    "go": "went", "grow": "grew", "hear": "heard", "hide": "hid", "hold": "held", "keep": "kept", "know": "knew",
    "leave": "left", "lose": "lost", "make": "made", "mean": "meant", "meet": "met", "overcharge": "overcharged",
    "overtake": "overtook", "overturn": "overturned", "pay": "paid", "put": "put", "quit": "quit", "read": "read",
    "rewrite": "rewrote", "rip": "ripped", "run": "ran", "say": "said", "see": "saw", "sell": "sold", "send": "sent",
    "set": "set", "sing": "sang", "spend": "spent", "spoil": "spoiled", "steal": "stole", "take": "took",
    "teach": "taught", "tell": "told", "think": "thought", "try on": "tried on", "uphold": "upheld", "wear": "wore",
    "win": "won", "withdraw": "withdrew", "write": "wrote",
}  # fmt: skip
_DOUBLING = frozenset(
    (
        "admit", "chat", "chop", "commit", "cut", "dig", "drag", "drop", "fit",
        "get", "grab", "grep", "hit", "hug", "let", "mod", "pat", "pet",
        "pin", "plan", "plug", "put", "quit", "rip", "rob", "rub", "run",
        "scan", "set", "ship", "shop", "sit", "skip", "slip", "spin", "split",
        "stir", "stop", "swap", "trim", "win", "wrap",
    )
)  # fmt: skip
_PLURALS = {"bus": "buses", "person": "people", "wife": "wives", "shelf": "shelves", "knife": "knives"}
_VOWELS = "aeiou"


@cache
def past(verb: str) -> str:
    """The simple past of a base form; a particle stays behind."""
    if verb in _PAST:
        return _PAST[verb]
    head, _, particle = verb.partition(" ")
    return " ".join(filter(None, (_PAST.get(head) or _regular_past(head), particle)))


@cache
def gerund(verb: str) -> str:
    """The -ing form of a base form; a particle stays behind."""
    head, _, particle = verb.partition(" ")
    if head.endswith("ie"):
        form = head[:-2] + "ying"
    elif head.endswith("e") and not head.endswith(("ee", "oe", "ye")):
        form = head[:-1] + "ing"
    else:
        form = head + (head[-1] if head in _DOUBLING else "") + "ing"
    return " ".join(filter(None, (form, particle)))


@cache
def plural(noun: str) -> str:
    """The plural of a noun phrase: its last word, or the noun before "of"."""
    head, of, rest = noun.partition(" of ")
    before, _, last = head.rpartition(" ")
    form = _PLURALS.get(last) or _with_s(last)
    return f"{before} {form}".strip() + of + rest


@cache
def with_article(noun: str) -> str:
    """The noun phrase after "a" or "an"."""
    first = noun.split(" ", 1)[0].lower()
    vowel = first[0] in _VOWELS and not first.startswith(("uni", "use", "usb", "eu", "one"))
    spelled_out = first in {"mp3", "html", "hdmi"}
    return f"{'an' if vowel or spelled_out else 'a'} {noun}"


def _regular_past(verb: str) -> str:
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in _VOWELS:
        return verb[:-1] + "ied"
    return verb + (verb[-1] if verb in _DOUBLING else "") + "ed"


def _with_s(word: str) -> str:
    if word.endswith("y") and word[-2] not in _VOWELS:
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "z", "ch", "sh", "go")) else "s")
