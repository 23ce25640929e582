"""The attributes that a template uses of its nested stacks: the checks of these record them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from orchestrator.engine.validation.type_resolution import TypeResolver
from orchestrator.json_types import JsonObject
from orchestrator.operations.planning.early_edges import items
from orchestrator.resources.nested_type import AttributePath
from orchestrator.template.definition import UNKNOWN, StackDefinition
from orchestrator.template.functions import FunctionError
from orchestrator.template.group_template import MemberDefinitions
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.template import Template

GET_ATTR: Final = "get_attr"


@dataclass(slots=True)
class UsedAttributes:
    """The attributes of a nested stack that a template uses, and the keys that it applies to them."""

    names: set[str] = field(default_factory=set)
    keys: dict[str, set[AttributePath]] = field(default_factory=dict)

    def stored(self) -> JsonObject:
        """Return the form in the body of a definition; keys are omitted where no attribute has any."""
        keys = {name: sorted(map(list, paths), key=str) for name, paths in self.keys.items() if any(paths)}
        return {"asked": sorted(self.names)} | ({"asked_keys": keys} if keys else {})


def attribute_keys(body: Mapping[str, Any] | None) -> Mapping[str, tuple[AttributePath, ...]]:
    """Return the keys that the template applies to attributes, from the body of a definition."""
    stored = (body or {}).get("asked_keys") or {}
    return {name: tuple(map(tuple, paths)) for name, paths in stored.items()}


def used_attributes(
    template: Template, resolver: TypeResolver, values: ParameterValues
) -> dict[str, UsedAttributes]:
    """Return the attributes that a template uses of each of its nested stacks.

    The parent of a group reads the attributes of the members' stacks itself.
    """
    resources = template.resources
    if isinstance(resources, MemberDefinitions):
        if not any(resolver.is_nested(sample) for sample in resolver.samples(template)):
            return {}
        return {name: UsedAttributes() for name, member in resources.items() if resolver.is_nested(member)}
    used = {
        name: UsedAttributes() for name, definition in resources.items() if resolver.is_nested(definition)
    }
    if used:
        view = StackDefinition(template.version, values, {}, strict=False)
        uses = [(definition.dep_attrs, definition.body) for definition in resources.values()]
        uses += [(output.dep_attrs, output.value) for output in template.outputs.values()]
        for attributes, value in uses:
            names = used.keys() & attributes.keys()
            for name in names:
                used[name].names |= attributes[name]
            for name, attribute, keys in _paths(value, view) if names else ():
                if name in names:
                    used[name].names.add(attribute)
                    used[name].keys.setdefault(attribute, set()).add(keys)
    return used


def _paths(value: Any, view: StackDefinition) -> Iterator[tuple[str, str, AttributePath]]:
    """Yield the calls of `get_attr` with keys: the resource, the attribute, the keys.

    Arguments computed from parameters are evaluated. Keys that depend on a resource are not known.
    """
    for item in items(value):
        if not isinstance(item, Mapping) or item.keys() != {GET_ATTR}:
            continue
        args = item[GET_ATTR]
        if not isinstance(args, list) or len(args) < 2 or not isinstance(args[0], str):
            continue
        try:
            attribute, *keys = view.resolved(args[1:])
        except (FunctionError, ValueError, TypeError):
            continue
        known = keys[: keys.index(UNKNOWN)] if UNKNOWN in keys else keys
        if isinstance(attribute, str) and all(isinstance(key, str | int) for key in known):
            yield args[0], attribute, tuple(known)
