"""Word-level rewording: any text, one-word chat lines included, said a little differently; no model."""

from __future__ import annotations

import re

from coalmine.server.generate.grammar import Draw
from coalmine.server.generate.judge import same
from coalmine.server.generate.synonyms import CONTRACTED, EXPANSIONS, SYNONYMS

_WORD = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)*")
_LITERAL = re.compile(r"\S*(?:[/\\_@=<>~|$#]|\w[.:-]\w|\d)\S*")
"""Paths, addresses, versions, compounds and code: kept as they are."""
_COMMAND = re.compile(r"\b(?:sudo|apt|apt-get|aptitude|dpkg|chmod|chown|mkdir|grep|systemctl|modprobe)\b")
_VOWEL = re.compile(r"(?!uni|use|usa|one|eu)[aeiou]|hour|honest", re.IGNORECASE)
_PAIR = re.compile(r"[A-Za-z]+ [A-Za-z]+")
_FILLER = re.compile(
    r"^(?:well|so|ok so|um+|uh+|hmm+|actually|basically|just|anyway|yeah|oh|ah|and|but|hey|bah|lol|haha)[,.\s]+"
    r"(?=\S+\s\S)"
    r"|[,\s]+(?:lol|haha|though|tho|really|you know|i guess|dude|man|anyway|:\)|:P|:D|;\))(?=\s*[.!?]*$)",
    re.IGNORECASE,
)
_SUBORDINATE = re.compile(
    r"^(?P<main>[^,;?!]{8,}?),? (?P<link>because|if|when|since|unless|until|after|before|while|although)"
    r" (?P<rest>[^,;?!.]{6,})(?P<end>[.!]*)$",
    re.IGNORECASE,
)
_FRONTED = re.compile(
    r"^(?P<link>because|if|when|since|unless|until|after|before|while|although) (?P<rest>[^,;?!.]{6,}),"
    r" (?P<main>[^?!.]{6,})(?P<end>[.!]*)$",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"\?|^(?:how|what|why|where|when|who|which|is|are|do|does|did|can|could|would|has|have|any ?one)\b", re.IGNORECASE
)

_SHORT_FRAMES = (
    "well, {}", "{} then", "i'd say {}", "{}, i guess", "so, {}", "{} for me", "hm, {}", "{}, i think", "{} indeed",
    "{}, really", "oh, {}", "{} :)", "{}...", "{}, you know", "and {}", "{} here", "just {}", "{}, that is", "ah, {}",
    "{}, sure", "i mean, {}", "{} anyway", "{} again", "simply {}", "right, {}", "{}, as i said", "{} from my side",
    "once more: {}", "{} now", "now {}", "um, {}", "{} after all", "that would be {}", "yes: {}", "it's {}",
    "all in all {}",
)  # fmt: skip
_STATEMENT_FRAMES = (
    "{}, as far as i can tell", "i mean, {}", "basically, {}", "in other words, {}", "to put it differently, {}",
    "{}, you know",
    "as i see it, {}", "what i am saying is that {}", "{}, to be honest", "well, {}", "the way i see it, {}",
    "{}, that's all",
    "it is fair to say that {}", "let me put it this way: {}", "{}, if you see what i mean", "honestly, {}",
    "the point is: {}",
    "put simply, {}", "{}, as i said", "i would say {}", "{}, in short", "to be clear, {}", "look, {}", "so {}",
    "{}, i think",
    "one could say that {}", "as it happens, {}", "{}, one might say", "the fact is that {}", "say, {}",
    "{}, plainly put",
)  # fmt: skip
_QUESTION_FRAMES = (
    "quick question: {}", "tell me, {}", "i wonder, {}", "just asking, {}", "may i ask: {}", "{} anyone?", "so, {}",
    "say, {}",
    "i would like to know: {}", "do you know, {}", "can someone tell me, {}", "out of curiosity, {}", "well, {}",
    "hm, {}",
    "my question is: {}", "one more thing, {}", "please tell me: {}", "{} any ideas?", "and {}", "{} do you know?",
    "now, {}",
)  # fmt: skip


def reword(text: str, draw: Draw) -> str:
    """Another wording of the text; blank for a blank text.

    Words or their order differ, not merely case, spaces or punctuation.
    """
    source = " ".join(text.split())
    if not source:
        return ""
    boldness = 0.35 + 0.5 * draw.uniform()
    result = source
    if draw.uniform() < 0.5:
        result = _without_filler(result)
    if draw.uniform() < 0.5:
        result = _reordered(result)
    result = _contractions(result, draw)
    result = _synonyms(result, boldness, draw)
    if same(result) == same(source) or draw.uniform() < 0.8 * len(source.split()) ** -0.25:
        result = _framed(result, draw)
    result = _punctuation(result, draw)
    while same(result) == same(source):
        result = _framed(result, draw)
    return result


def _without_filler(text: str) -> str:
    return _FILLER.sub("", text).strip() or text


def _reordered(text: str) -> str:
    """Main and subordinate clause change places."""
    if match := _FRONTED.match(text):
        return f"{_matched(match['main'], match['link'])} {match['link'].lower()} {match['rest']}{match['end']}"
    if match := _SUBORDINATE.match(text):
        main = match["main"]
        return f"{_matched(match['link'], main)} {match['rest']}, {_lowered(main)}{match['end']}"
    return text


def _contractions(text: str, draw: Draw) -> str:
    def expand(match: re.Match[str]) -> str:
        long = EXPANSIONS.get(match[0].lower().replace("’", "'"))
        return _matched(long, match[0]) if long and draw.uniform() < 0.6 else match[0]

    def contract(match: re.Match[str]) -> str:
        short = CONTRACTED.get(match[0].lower())
        return _matched(short, match[0]) if short and draw.uniform() < 0.6 else match[0]

    return _WORD.sub(expand, text) if draw.uniform() < 0.5 else _PAIR.sub(contract, text)


def _synonyms(text: str, boldness: float, draw: Draw) -> str:
    if _COMMAND.search(text):
        return text
    shouted = text.isupper()

    def swap(match: re.Match[str]) -> str:
        others = SYNONYMS.get(match[0].lower())
        return _matched(draw.of(others), match[0]) if others and draw.uniform() < boldness else match[0]

    def kept(position: int, token: str) -> bool:
        """Literals, and names: a capital inside a sentence."""
        return bool(_LITERAL.fullmatch(token)) or (position > 0 and token[:1].isupper() and not shouted)

    tokens = text.split(" ")
    swapped = [token if kept(place, token) else _WORD.sub(swap, token) for place, token in enumerate(tokens)]
    for place in range(1, len(tokens)):
        if swapped[place] != tokens[place] and swapped[place - 1].lower() in ("a", "an"):
            article = "an" if _VOWEL.match(swapped[place]) else "a"
            swapped[place - 1] = _matched(article, swapped[place - 1])
    return " ".join(swapped)


def _framed(text: str, draw: Draw) -> str:
    if len(text.split()) <= 3 and not text.endswith("?"):
        frames: tuple[str, ...] = _SHORT_FRAMES
    else:
        frames = _QUESTION_FRAMES if _QUESTION.search(text) else _STATEMENT_FRAMES
    frame = draw.of(frames)
    if frame.startswith("{}"):
        return frame.format(text if "?" in frame else _unended(text))
    return frame.format(_lowered(text))


def _punctuation(text: str, draw: Draw) -> str:
    roll = draw.uniform()
    if roll < 0.2:
        text = text[:1].upper() + text[1:]
    elif roll < 0.35:
        text = _lowered(text)
    roll = draw.uniform()
    if text[-1].isalnum():
        text += "." if roll < 0.2 else "!" if roll < 0.25 else ""
    elif text[-1] in ".!" and roll < 0.4:
        text = _unended(text)
    return text


def _unended(text: str) -> str:
    return re.sub(r"(?<=\w)[.!,]+$", "", text)


def _lowered(text: str) -> str:
    """Without the capital of a sentence's beginning; "I" and words all in capitals keep theirs."""
    first = text.split(" ", 1)[0]
    keeps = first == "I" or first.startswith(("I'", "I’")) or (len(first) > 1 and first.isupper())
    return text if keeps else text[:1].lower() + text[1:]


def _matched(word: str, model: str) -> str:
    """The word in the case of its model."""
    if model.isupper() and len(model) > 1:
        return word.upper()
    return word[:1].upper() + word[1:] if model[:1].isupper() else word
