"""Validate cron expressions with croniter, as Heat does (docs/internals/hot-language.md §4.3)."""

from __future__ import annotations

from typing import Final

from croniter import croniter

_MAX_LENGTH: Final = 1_000  # characters; expanding lists takes time


def cron_fault(text: str) -> str | None:
    """Return the reason why `text` is not a cron expression, None if it is valid."""
    if len(text) > _MAX_LENGTH:
        return f"{len(text)} characters are more than {_MAX_LENGTH}"
    try:
        croniter.expand(text)
    except Exception as error:  # like Heat: croniter raises several exception types
        return str(error).partition("  Cron:")[0].rstrip()  # the rest describes croniter's internal state
    return None
