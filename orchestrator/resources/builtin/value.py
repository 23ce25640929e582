"""OS::Heat::Value: gives an expression a name (spec/resource-types.md A3)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from orchestrator.errors import ProviderError
from orchestrator.resources.base import (
    Attribute,
    Context,
    Created,
    Fault,
    Observation,
    Property,
    ResourceType,
    Value,
)
from orchestrator.schema.constraints import AllowedValues


class ValueResource(ResourceType):
    """Holds a value, converted to a type if one is given, for others to use."""

    name = "OS::Heat::Value"
    calls_out = False
    support_version = "7.0.0"
    properties = {
        "value": Property("any", "The expression to give a name to.", required=True, update_allowed=True),
        "type": Property(
            "string",
            "What to convert the value to.",
            update_allowed=True,
            constraints=(AllowedValues(("string", "number", "comma_delimited_list", "json", "boolean")),),
        ),
    }
    attributes = {"value": Attribute("The value.")}

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """The value must be convertible."""
        if "value" not in properties or properties["value"] is None:
            return ()
        try:
            converted(properties)
        except ValueError as error:
            return (Fault(str(error), "value"),)
        return ()

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Make sure that the value converts.

        Raises:
            ProviderError: it does not.
        """
        _sure(props)
        return Created(ctx.physical_name)

    def find(self, ctx: Context, token: str) -> str | None:
        """Return nothing: it is made in our own row or not at all."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Show the value as the properties have it now."""
        if ctx.action == "DELETE":
            return Observation(exists=False)
        return Observation(exists=True, attributes={"value": _sure(ctx.properties)})

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Make sure that the new value converts.

        Raises:
            ProviderError: it does not.
        """
        _sure(props)
        return Created(physical_id)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Nothing to remove."""


def converted(props: Mapping[str, Value]) -> Any:
    """Return the value as its `type` has it: as it is without one, or when it is null.

    Raises:
        ValueError: it cannot be.
    """
    value, kind = props.get("value"), props.get("type")
    return value if value is None or not kind else _CONVERTERS[kind](value)


def _sure(props: Mapping[str, Value]) -> Any:
    try:
        return converted(props)
    except ValueError as error:
        raise ProviderError(str(error), kind="ValueError") from None


def _string(value: Any) -> str:
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError(f"Value must be a string; got {value!r}")


def _number(value: Any) -> int | float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    for read in (int, float):
        try:
            number = read(value)
        except (ValueError, TypeError):
            continue
        if math.isfinite(number):
            return number
    raise ValueError(f"could not convert string to float: {value!r}")


def _list(value: Any) -> list[str]:
    if isinstance(value, list | tuple):
        return [str(item) for item in value]
    if isinstance(value, str):
        return value.split(",") if value else []
    raise ValueError(f"Value must be a comma-delimited list string: {value}")


def _json(value: Any) -> Any:
    if isinstance(value, dict | list):
        return value
    try:
        read = json.loads(value)
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"Value must be valid JSON: {error}") from None
    if isinstance(read, dict | list):
        return read
    raise ValueError("Value must be valid JSON: neither a map nor a list")


def _boolean(value: Any) -> bool:
    text = str(value).lower()
    if text in {"t", "true", "on", "y", "yes", "1"}:
        return True
    if text in {"f", "false", "off", "n", "no", "0"}:
        return False
    raise ValueError(f"Unrecognized value '{value}', acceptable values are: true, false")


_CONVERTERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "string": _string,
    "number": _number,
    "comma_delimited_list": _list,
    "json": _json,
    "boolean": _boolean,
}
