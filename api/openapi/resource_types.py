"""Template validation, resource types, template versions and functions."""

from __future__ import annotations

from typing import Any, Final, Literal

from api.openapi.operation import Operation, Operations, ok
from api.openapi.stacks import StackDefinition
from orchestrator.bodies.model import Shape, described, optional
from orchestrator.json_types import JsonObject

TAG: Final = "catalogue"


class ParameterShown(Shape):
    """A parameter of a template."""

    Type: str = described("String, Number, CommaDelimitedList, Json or Boolean.", "Number")
    Description: str = described("Description in the template.", "")
    NoEcho: str = described("Whether its value is hidden, as a text.", "false")
    Label: str = described("Display name.", "length")
    Default: Any = optional("Default value.", 12)


class Validated(Shape):
    """Result of a validation."""

    Description: str = described("Description in the template.", "Two random strings")
    Parameters: dict[str, ParameterShown] = described("Parameters by name.")
    ParameterGroups: list[Any] | None = optional("Groups of parameters.")
    NestedParameters: JsonObject | None = optional("Parameters of nested templates, by resource.")
    Environment: JsonObject | None = optional("The merged environment.", {})
    errors: list[Any] | None = optional(
        "Errors of values, for which a create would be refused, with `with_warnings`. Extension."
    )
    warnings: list[Any] | None = optional(
        "Warnings about probable mistakes, with `with_warnings`. Extension."
    )


class ValidateQuery(Shape):
    """Options of a validation."""

    show_nested: bool | None = optional("Include nested templates.", False)
    ignore_errors: str | None = optional("Error codes to ignore, separated by commas.", "99001")
    with_warnings: bool | None = optional("Include warnings about probable mistakes. Extension.", False)


class DescribedType(Shape):
    """A type with its description."""

    resource_type: str = described("Name.", "OS::Heat::RandomString")
    description: str = described("Description.", "A random string, generated once and kept.")


class TypeList(Shape):
    """The types, sorted."""

    resource_types: list[str | DescribedType] = described(
        "Names, or names with descriptions.", ["OS::Heat::RandomString"]
    )


class TypeListQuery(Shape):
    """Filter of resource types."""

    support_status: Literal["UNKNOWN", "SUPPORTED", "DEPRECATED", "UNSUPPORTED", "HIDDEN"] | None = optional(
        "Only types with this support status.", "SUPPORTED"
    )
    name: str | None = optional("Regular expression, matched from the start of the name.", "OS::Heat")
    version: str | None = optional("Only types supported since this version.", "5.0.0")
    with_description: bool | None = optional("Include descriptions.", False)


class TypeShow(Shape):
    """A type."""

    resource_type: str = described("Name.", "OS::Heat::RandomString")
    properties: JsonObject = described(
        "Properties by name.", {"length": {"type": "integer", "required": False}}
    )
    attributes: JsonObject = described("Attributes by name.", {"value": {"description": "The string."}})
    support_status: JsonObject = described("Support status.", {"status": "SUPPORTED"})
    description: str | None = optional("Description.")


class TypeQuery(Shape):
    """Options of a type."""

    with_description: bool | None = optional("Include the description.", False)


class TypeTemplateQuery(Shape):
    """Format of the template."""

    template_type: Literal["cfn", "hot"] | None = optional("Format of the template; default: cfn.", "hot")


class Version(Shape):
    """A template version."""

    version: str = described("Key and date.", "heat_template_version.2021-04-16")
    type: str = described("hot or cfn.", "hot")
    aliases: list[str] = described("Aliases.", ["heat_template_version.wallaby"])


class VersionList(Shape):
    """Template versions."""

    template_versions: list[Version] = described("The versions.")


class Function(Shape):
    """A template function."""

    functions: str = described("Name of the function.", "get_attr")
    description: str = described("Description.", "A function for resolving resource attributes.")


class FunctionList(Shape):
    """The functions of a version."""

    template_functions: list[Function] = described("The functions.")


class FunctionQuery(Shape):
    """Filter of functions."""

    with_condition_func: bool | None = optional("Include condition functions.", False)


OPERATIONS: Final[Operations] = {
    "templates.validate": Operation(
        TAG, ok("Parameters and environment of the template.", Validated), ValidateQuery, StackDefinition
    ),
    "templates.version_index": Operation(TAG, ok("The versions.", VersionList)),
    "templates.function_index": Operation(TAG, ok("The functions.", FunctionList), FunctionQuery),
    "catalogue.type_index": Operation(TAG, ok("The types.", TypeList), TypeListQuery),
    "catalogue.type_schema": Operation(TAG, ok("Resource type.", TypeShow), TypeQuery),
    "catalogue.type_template": Operation(TAG, ok("The template.", JsonObject), TypeTemplateQuery),
}
