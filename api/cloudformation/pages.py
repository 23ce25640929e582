"""Pagination: `NextToken` is the start of the next page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from api.cloudformation.arguments import Arguments

Row = TypeVar("Row")

PAGE: Final = 1_000  # items
FULL_PAGE: Final = 100  # items that are expensive to read
LONGEST_TOKEN: Final = 1_024  # characters


def token(arguments: Arguments) -> str | None:
    """Return the start of the requested page; None for the first page."""
    text = arguments.text("NextToken")
    if text is not None and len(text) > LONGEST_TOKEN:
        arguments.wrong("NextToken is none of ours")
    return text


def page(rows: Iterable[Row], size: int, after: Callable[[Row], str]) -> tuple[list[Row], dict[str, Any]]:
    """Return at most `size` rows and the token of the next page. `rows` has at most a single extra row."""
    found = list(rows)
    if len(found) <= size:
        return found, {}
    return found[:size], {"NextToken": after(found[size - 1])}
