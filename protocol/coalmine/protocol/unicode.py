"""Text that an encoding can write."""

from __future__ import annotations


def is_unicode(text: str) -> bool:
    """False for a lone surrogate, which JSON can smuggle in and no encoding can write."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
