"""What is wrong with a generated text, if anything."""

from __future__ import annotations

import re

from coalmine.server.generate.items import REFUSED

_APOLOGY = (
    r"(?:(?:i['’]?m|i am|we['’]?re) (?:really |very |so |truly )?(?:sorry|afraid)|sorry|apologies|unfortunately)"
    r"[,.:;]? (?:but )?"
)
_UNABLE = (
    r"i (?:can['’]?t|can ?not|won['’]?t|will not|am unable to|am not able to|must decline to|"
    r"don['’]?t feel comfortable)"
)
_SERVICE = (
    r"(?:help|assist|comply|fulfil+|provide|generate|create|write|produce|paraphrase|rephrase|rewrite|reword|engage|answer|respond|"
    r"complete|continue|support|discuss|process|translate|do (?:that|this)|with that)"
)
_REFUSAL = re.compile(
    rf"^\W*(?:{re.escape(REFUSED)}"
    rf"|as an? (?:ai|artificial intelligence|(?:large )?language model|assistant)\b"
    rf"|(?:i['’]?m|i am) (?:just |only )?an? (?:ai|(?:large )?language model|virtual assistant)\b"
    rf"|{_APOLOGY}(?:as an? (?:ai|language model)|{_UNABLE})\b"
    rf"|{_UNABLE} {_SERVICE}\b"
    rf"|{_UNABLE}\W*$"
    rf"|i (?:must|have to) (?:decline|refuse)\b)",
    re.IGNORECASE,
)


def refuses(text: str) -> bool:
    """Whether the text declines to write instead of writing."""
    return bool(_REFUSAL.search(text))


def same(text: str) -> str:
    """What two texts share when they differ in case, spaces and punctuation only."""
    folded = text.casefold()
    return " ".join(re.findall(r"\w+", folded) or folded.split())
