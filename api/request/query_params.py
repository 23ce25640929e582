"""Query strings with Heat's rules and error messages (docs/internals/rest-api.md §1). An empty value counts
as absent.
"""

from __future__ import annotations

from collections.abc import Iterable

from flask import request

from api.dependencies import dependencies
from orchestrator.errors import InvalidRequest
from orchestrator.store.stacks.stacks import Direction

LARGEST = (1 << 31) - 1  # larger limits are reduced to this: no listing is longer


def text(name: str) -> str | None:
    """Return the value of `name`; None if absent."""
    return request.args.get(name) or None


def texts(*names: str) -> list[str]:
    """Return all values of `names`."""
    return [value for name in names for value in request.args.getlist(name) if value]


def comma_separated(name: str) -> list[str]:
    """Return the comma-separated words of `name`."""
    return [item.strip() for item in (text(name) or "").split(",") if item.strip()]


def boolean(name: str, *, default: bool = False) -> bool:
    """Return the boolean value of `name`, case-insensitive.

    Raises:
        InvalidRequest: the value is neither true nor false.
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
    """Return a non-negative integer, at most LARGEST; None if absent.

    Raises:
        InvalidRequest: the value is negative or not an integer.
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
    """Return the requested levels of nested stacks, at most the configured depth.

    Raises:
        InvalidRequest: `nested_depth` is negative or not an integer.
    """
    return min(integer("nested_depth") or 0, dependencies().settings.max_nested_stack_depth)


def direction() -> Direction | None:
    """Return `sort_dir`.

    Raises:
        InvalidRequest: it is neither asc nor desc.
    """
    match text("sort_dir"):
        case None | "asc" | "desc" as value:
            return value
        case value:
            raise InvalidRequest(f"Unknown sort direction '{value}', must be one of: asc, desc.")


def filters(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the given filters among `names`, each with its alternative values."""
    return {name: values for name in names if (values := texts(name))}


def refuse_unknown(allowed: Iterable[str]) -> None:
    """Reject query parameters that are not allowed.

    Raises:
        InvalidRequest: names the rejected parameters.
    """
    unknown = sorted(set(request.args) - set(allowed))
    if unknown:
        raise InvalidRequest(f"Invalid filter parameters {unknown}")


def require_known(*allowed: str) -> None:
    """Reject unknown query parameters of an endpoint that Heat does not have.

    Raises:
        InvalidRequest: names the rejected and the allowed parameters.
    """
    unknown = sorted(set(request.args) - set(allowed))
    if unknown:
        raise InvalidRequest(
            f"Unknown query parameter: {', '.join(unknown)}. Allowed: {', '.join(sorted(allowed))}."
        )
