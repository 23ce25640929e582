"""The supported numbers: those that every JSON implementation represents."""

from __future__ import annotations

from typing import Final

WHOLE: Final = range(-(2**63), 2**64)


def whole(number: int) -> int:
    """Return a whole number.

    Raises:
        ValueError: 64 bits have no room for it.
    """
    if number not in WHOLE:
        raise ValueError(f"{number} does not fit in 64 bits")
    return number
