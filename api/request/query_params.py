"""Query strings: Heat's rules and refusals (docs/internals/rest-api.md §1). An empty value is an
absent one.
"""

from __future__ import annotations

from collections.abc import Iterable

from flask import request

from api.dependencies import dependencies
from orchestrator.errors import InvalidRequest
from orchestrator.store.stacks.stacks import Direction

LARGEST = (1 << 31) - 1  # no listing is longer; a larger number means "all of it"


def text(name: str) -> str | None:
    """Return the value of `name`, None when absent."""
    return request.args.get(name) or None


def texts(*names: str) -> list[str]:
    """Return every value given under any of `names`."""
    return [value for name in names for value in request.args.getlist(name) if value]


def words(name: str) -> list[str]:
    """Return the comma-separated words of `name`."""
    return [word.strip() for word in (text(name) or "").split(",") if word.strip()]


def boolean(name: str, *, default: bool = False) -> bool:
    """Return `true` or `false` in any case.

    Raises:
        InvalidRequest: it is something else.
    """
    value = text(name)
    if value is None:
        return default
    if value.lower() not in {"true", "false"}:
        raise InvalidRequest(
            f'Unrecognized value "{value}" for "{name}", acceptable values are: true, false.'
        )
    return value.lower() == "true"


def integer(name: str) -> int | None:
    """Return a non-negative integer, None when absent; never more than LARGEST.

    Raises:
        InvalidRequest: it is no integer, or negative.
    """
    value = text(name)
    if value is None:
        return None
    try:
        number = int(value)
    except ValueError:
        raise InvalidRequest(f"Only integer is acceptable by '{name}'.") from None
    if number < 0:
        raise InvalidRequest(
            f"Value '{value}' is invalid for '{name}' which only accepts non-negative integer."
        )
    return min(number, LARGEST)


def levels() -> int:
    """Return how many levels of nested stacks are asked for, never more than there may be.

    Raises:
        InvalidRequest: `nested_depth` is no integer, or negative.
    """
    return min(integer("nested_depth") or 0, dependencies().settings.max_nested_stack_depth)


def direction() -> Direction | None:
    """Return `sort_dir`.

    Raises:
        InvalidRequest: neither asc nor desc.
    """
    match text("sort_dir"):
        case None | "asc" | "desc" as value:
            return value
        case value:
            raise InvalidRequest(f"Unknown sort direction '{value}', must be one of: asc, desc.")


def filters(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the filters among `names` that were given, each with its alternatives."""
    return {name: values for name in names if (values := texts(name))}


def refuse_unknown(allowed: Iterable[str]) -> None:
    """Refuse any query key but the allowed ones.

    Raises:
        InvalidRequest: naming the others.
    """
    unknown = sorted(set(request.args) - set(allowed))
    if unknown:
        raise InvalidRequest(f"Invalid filter parameters {unknown}")
