"""The live attributes that a template uses of its resources: the checks of these record them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from orchestrator.engine.validation.type_resolution import TypeResolver
from orchestrator.resources.base import ResourceType
from orchestrator.template.definition import ResourceDefinition
from orchestrator.template.functions import ALL
from orchestrator.template.group_template import MemberDefinitions
from orchestrator.template.template import Template


def used_live_attributes(template: Template, resolver: TypeResolver, *, nested: bool) -> dict[str, list[str]]:
    """Return the used live attributes by resource; resources that have none are omitted.

    The outputs of a `nested` stack use attributes too. The parent may use any attribute of the members of a
    group.
    """
    if not any(_live(resolver, sample) for sample in resolver.samples(template)):
        return {}
    resources = template.resources
    if isinstance(resources, MemberDefinitions):
        found = {name: _live(resolver, member) - {"show"} for name, member in resources.items()}
    else:
        found = dict.fromkeys(resources, frozenset[str]())
        for uses in _uses(template, nested=nested):
            for name in uses.keys() & found.keys():
                found[name] |= _chosen(uses[name], _live(resolver, resources[name]))
    return {name: sorted(names) for name, names in found.items() if names}


def _uses(template: Template, *, nested: bool) -> Iterable[Mapping[str, frozenset[str]]]:
    for definition in template.resources.values():
        if definition.dep_attrs:
            yield definition.dep_attrs
    if nested:
        yield from (output.dep_attrs for output in template.outputs.values())


def _live(resolver: TypeResolver, definition: ResourceDefinition) -> frozenset[str]:
    resource_type = resolver.of(definition)
    return resource_type.live_attributes if isinstance(resource_type, ResourceType) else frozenset()


def _chosen(used: frozenset[str], live: frozenset[str]) -> frozenset[str]:
    """Return the used names among `live`; ALL stands for all but `show`, as in `get_attr`."""
    return used & live | (live - {"show"} if ALL in used else frozenset())
