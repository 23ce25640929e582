"""The hint "did you mean" of a fault: the most similar known name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache

_MAX_LENGTH = 80  # characters; typing errors in longer names are unlikely, and the comparison is quadratic


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return ``did you mean "x"?`` for the most similar name in `known`, "" if none is similar."""
    if not isinstance(word, str) or len(word) > _MAX_LENGTH:
        return ""
    near = _nearest(word, tuple(known))
    return f'did you mean "{near}"?' if near else ""


@lru_cache(maxsize=1024)  # a mistake repeated in a thousand resources is compared once
def _nearest(word: str, known: tuple[str, ...]) -> str:
    lowered = word.lower()
    same = next((name for name in known if name.lower() == lowered), None)
    return same or next(iter(get_close_matches(word, known, n=1)), "")
