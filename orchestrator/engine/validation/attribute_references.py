"""References to attributes in a template: whether the type has them, and their locations. Pure."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, Final

from orchestrator.errors import Diagnostic, did_you_mean
from orchestrator.resources.base import ResourceType
from orchestrator.resources.template_type import RESOURCE, TemplateType
from orchestrator.template.diagnostics import Path, path_in_message, path_text

ATTRIBUTE_FUNCTIONS: Final = ("get_attr", "Fn::GetAtt")


def has_attribute(resource_type: ResourceType, name: str) -> bool:
    """Whether a type has an attribute; a template's `resource.NAME` requires that resource."""
    if not resource_type.has_attribute(name):
        return False
    if (
        not isinstance(resource_type, TemplateType)
        or not name.startswith(RESOURCE)
        or name in resource_type.attributes
    ):
        return True
    inside = resource_type.template.undecided.resources
    inner = name.removeprefix(RESOURCE)
    return inner in inside or inner.partition(".")[0] in inside


def find_get_attr(values: Sequence[tuple[Any, str]], name: str, attribute: str) -> tuple[Path, str]:
    """Return the location of the function that reads a resource's attribute: the keys that lead to it, and
    the path of the value where they start.
    """
    todo: list[tuple[Any, Path, str]] = [(value, (), place) for value, place in values]
    otherwise: tuple[Path, str] = (), values[0][1]
    while todo:
        item, keys, place = todo.pop()
        if isinstance(item, Mapping):
            function = next(iter(item)) if len(item) == 1 else None
            if function in ATTRIBUTE_FUNCTIONS:
                arguments = item[function]
                if isinstance(arguments, list) and arguments[:2] == [name, attribute]:
                    return (*keys, str(function)), place
            todo.extend((member, (*keys, key), place) for key, member in item.items())
        elif isinstance(item, list):
            todo.extend((member, (*keys, index), place) for index, member in enumerate(item))
    return otherwise


def unknown_attribute(
    resource_type: ResourceType,
    name: str,
    attribute: str,
    values: Sequence[tuple[Any, str]],
    functions: Container[str],
) -> Diagnostic:
    """Return the fault of a reference to an attribute that the type of resource `name` does not have, at its
    first use in `values`; `functions` belong to the template's version.
    """
    keys, place = find_get_attr(values, name, attribute)
    location = path_in_message(keys, functions, place)
    return Diagnostic(
        "unknown-attribute",
        f"{location}: The Referenced Attribute ({name} {attribute}) is incorrect.",
        path_text(keys, place),
        hint=did_you_mean(attribute, resource_type.attributes),
        # The attributes of a nested stack are certain only once it exists.
        severity="warning" if isinstance(resource_type, TemplateType) else "error",
    )
