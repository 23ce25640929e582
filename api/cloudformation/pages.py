"""Long lists a page at a time: `NextToken` says where the next one begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from api.cloudformation.arguments import Arguments

Row = TypeVar("Row")

PAGE: Final = 1_000  # items
FULL_PAGE: Final = 100  # of those that cost much each
LONGEST_TOKEN: Final = 1_024  # characters


def token(arguments: Arguments) -> str | None:
    """Return where the page asked for begins, None for the first."""
    given = arguments.text("NextToken")
    if given is not None and len(given) > LONGEST_TOKEN:
        arguments.wrong("NextToken is none of ours")
    return given


def page(rows: Iterable[Row], size: int, after: Callable[[Row], str]) -> tuple[list[Row], dict[str, Any]]:
    """Return at most `size` of the rows, of which there is one more at most; and, if there is, where to go
    on, as it is answered beside them.
    """
    found = list(rows)
    if len(found) <= size:
        return found, {}
    return found[:size], {"NextToken": after(found[size - 1])}
