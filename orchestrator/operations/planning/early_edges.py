"""The requirements that a resource needs only to exist, not to be ready (operations/adr/0015). Pure.

A dependent may start early if it uses only the reference id and early attributes of its requirement, in its
properties or metadata. A requirement by `depends_on`, or one that a type implies, is always awaited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestrator.engine.validation.type_resolution import TypeResolver
from orchestrator.resources.base import ResourceType
from orchestrator.resources.nested_type import NestedType
from orchestrator.template.definition import ResourceDefinition
from orchestrator.template.group_template import MemberDefinitions
from orchestrator.template.template import Template

REFERENCES: Final = frozenset({"get_resource", "get_attr", "Ref", "Fn::GetAtt"})
NO_NAMES: Final[frozenset[str]] = frozenset()


def early_requirements(template: Template, resolver: TypeResolver) -> dict[str, frozenset[str]]:
    """Return the early requirements by dependent; dependents that have none are omitted."""
    resources = template.resources
    if isinstance(resources, MemberDefinitions) or not any(
        _early_attributes(resolver, sample) for sample in resolver.samples(template)
    ):
        return {}
    early: dict[str, frozenset[str]] = {}
    for name, definition in resources.items():
        if attributes := _early_attributes(resolver, definition):
            early[name] = attributes
    required = frozenset(early)
    found = {
        name: _early(definition, definition.requires & required, resolver, template, early)
        for name, definition in resources.items()
        if not required.isdisjoint(definition.requires)
    }
    return {name: names for name, names in found.items() if names}


def _early_attributes(resolver: TypeResolver, definition: ResourceDefinition) -> frozenset[str]:
    resource_type = _external_type(resolver, definition)
    return NO_NAMES if resource_type is None else resource_type.early_attributes


def _external_type(resolver: TypeResolver, definition: ResourceDefinition) -> ResourceType | None:
    """Return the type of a resource if it may be at either end of an early edge. A local type or a nested
    stack hands values on to resources that are not known here.
    """
    resource_type = resolver.of(definition)
    if not isinstance(resource_type, ResourceType) or isinstance(resource_type, NestedType):
        return None
    return resource_type if resource_type.calls_out else None


def _early(
    definition: ResourceDefinition,
    candidates: frozenset[str],
    resolver: TypeResolver,
    template: Template,
    early: Mapping[str, frozenset[str]],
) -> frozenset[str]:
    resource_type = _external_type(resolver, definition)
    if resource_type is None or resource_type.needs_ready is True:
        return NO_NAMES
    body, uses = definition.body, definition.dep_attrs
    properties = body.get("properties") or {}
    names = candidates & {*_references(properties), *_references(body.get("metadata"))}
    names = frozenset(name for name in names if uses.get(name, NO_NAMES) <= early[name])
    if not names:
        return NO_NAMES
    texts = [text for name in resource_type.needs_ready or () for text in _texts(properties.get(name))]
    awaited = {name for name in names if any(_mentions(text, name) for text in texts)}
    given = body.get("depends_on") or ()
    awaited.update([given] if isinstance(given, str) else given)
    awaited.update(resource_type.implicit_requires(definition, template.resources))
    return names - awaited


def _mentions(text: str, name: str) -> bool:
    """Whether a text contains a name, perhaps as an argument in the syntax of a function."""
    return name in text and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


def _references(value: object) -> Iterator[str]:
    """Yield the names of the resources that functions in a value refer to."""
    for item in items(value):
        if isinstance(item, Mapping) and len(item) == 1:
            function, argument = next(iter(item.items()))
            name = argument[0] if isinstance(argument, list) and argument else argument
            if function in REFERENCES and isinstance(name, str):
                yield name


def _texts(value: object) -> Iterator[str]:
    """Yield all texts in a value."""
    return (item for item in items(value) if isinstance(item, str))


def items(value: object) -> Iterator[Any]:
    """Yield a value and everything in it."""
    todo: list[Any] = [value]
    while todo:
        item = todo.pop()
        yield item
        if isinstance(item, Mapping):
            todo.extend(item.values())
        elif isinstance(item, list):
            todo.extend(item)
