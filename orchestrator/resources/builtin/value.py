"""OS::Heat::Value: a named expression (docs/internals/resource-types.md §A3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from orchestrator.schema.properties import convert


class ValueResource(ResourceType):
    """Stores a value, converted to a type if specified, for use in the template."""

    name = "OS::Heat::Value"
    calls_out = False
    support_version = "7.0.0"
    properties = {
        "value": Property("any", "The expression to store.", required=True, update_allowed=True),
        "type": Property(
            "string",
            "The type to which the value is converted.",
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
        """Check that the value converts.

        Raises:
            ProviderError: the value does not convert.
        """
        _sure(props)
        return Created(ctx.physical_name)

    def find(self, ctx: Context, token: str) -> str | None:
        """Return None: the resource exists only as our own row."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Show the value as the properties have it now."""
        if ctx.action == "DELETE":
            return Observation(exists=False)
        return Observation(exists=True, attributes={"value": _sure(ctx.properties)})

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Check that the new value converts.

        Raises:
            ProviderError: the value does not convert.
        """
        _sure(props)
        return Created(physical_id)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Nothing to delete."""


def converted(props: Mapping[str, Value]) -> Any:
    """Return the value converted to `type`; unchanged if it is null or no type is specified.

    Raises:
        ValueError: the value does not convert.
    """
    value, type_ = props.get("value"), props.get("type")
    if value is None or not type_:
        return value
    read, faults = convert(_AS[type_], {"value": value})
    if faults:
        raise ValueError(faults[0].message)
    return read["value"]


def _sure(props: Mapping[str, Value]) -> Any:
    try:
        return converted(props)
    except ValueError as error:
        raise ProviderError(str(error), kind="ValueError") from None


# The type names are parameters', the accepted values properties'.
_AS: Final[Mapping[str, Mapping[str, Property]]] = {
    type_name: {"value": Property(schema_type)}
    for type_name, schema_type in (
        ("string", "string"),
        ("number", "number"),
        ("comma_delimited_list", "list"),
        ("json", "map"),
        ("boolean", "boolean"),
    )
}
