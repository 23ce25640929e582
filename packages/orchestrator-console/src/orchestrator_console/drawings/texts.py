"""Texts in drawings. Pure."""

from __future__ import annotations

from hashlib import blake2s


def shortened(text: str, most: int) -> str:
    """Return a text of at most `most` characters; the middle is left out, for names differ at their ends."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[-end:]}"


def anchor(kind: str, *parts: object) -> str:
    """Return the id of an element, made from what it shows: a refreshed page keeps it, and so the focus."""
    return f"{kind}-{blake2s(repr(parts).encode(), digest_size=8).hexdigest()}"
