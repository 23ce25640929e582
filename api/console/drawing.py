"""Texts in drawings. Pure."""

from __future__ import annotations


def shortened(text: str, most: int) -> str:
    """Return a text of at most `most` characters; the middle is left out, for names differ at their ends."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[-end:]}"
