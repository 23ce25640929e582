"""Sample members of a group, for validation before they exist (docs/internals/resource-types.md §A6).

A sample stands for all members with the same definition. Like in Heat, its fault names the path through the
group's child stack; its location is the definition's in the parent template.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from orchestrator.engine.validation.nested_faults import nested_path
from orchestrator.engine.validation.property_resolution import Resolved
from orchestrator.errors import Diagnostic
from orchestrator.json_types import JsonMapping
from orchestrator.resources.groups.group_type import GroupType
from orchestrator.resources.groups.resource_chain import ResourceChain
from orchestrator.template.definition import ResourceDefinition
from orchestrator.template.function_view import UNKNOWN
from orchestrator.template.functions.member import part_of, with_secrets
from orchestrator.template.group_template import PARAMETER, MemberDefinitions
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.secret_values import NO_SECRETS
from orchestrator.template.template import Template

CHILD: Final = "nested_stack"  # replaces the URL of a template that a type generates
_MEMBER: Final = re.compile(r"resources\.([^.]+)")


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample member: a template with only this member, and the number of members it stands for.

    `written` has the member with the values of its definition in place of the functions that refer to them.
    """

    template: Template
    values: ParameterValues
    written: Mapping[str, ResourceDefinition]
    count: int


def samples(
    resource_type: GroupType, properties: JsonMapping, resolved: Resolved, *, minimum: int = 0
) -> Iterator[Sample]:
    """Yield samples of a group whose `properties` properties are known, as if it had at least `minimum`
    members.
    """
    props = dict(properties)
    for name in resource_type.definition_properties:
        # partly unknown values are missing in `properties`
        value = props.setdefault(name, resolved.values.get(name))
        if value is UNKNOWN:
            return
    planned = resource_type.planned(props, minimum=minimum)
    secret = not resolved.secrets.isdisjoint(resource_type.definition_properties)
    hidden = frozenset({PARAMETER} if secret else ())
    secrets = resolved.secret_values(properties) if secret else NO_SECRETS
    values = ParameterValues(with_secrets({PARAMETER: planned.definitions}, secrets), hidden)
    template = planned.members.template()
    resources = template.resources
    assert isinstance(resources, MemberDefinitions)
    for part, definition in zip(planned.members.parts, resources.samples(), strict=True):
        if part.type:
            member = replace(definition, requires=frozenset())
            only = replace(template, resources={member.name: member})
            body = {key: part_of(planned.definitions[part.digest], member.name, key) for key in part.keys}
            written = {member.name: replace(member, body={"type": part.type, **body})}
            yield Sample(only, values, written, len(part.members))


def group_fault(fault: Diagnostic, resource_type: GroupType, place: str, properties: str) -> Diagnostic:
    """Return a member's fault as a fault of the group at `place`, whose properties are at `properties`."""
    nested = nested_path(fault, f"{place}<{CHILD}>")
    inside = _MEMBER.match(fault.path)
    if fault.file or inside is None:
        return nested
    rest = fault.path[inside.end() :]
    if isinstance(resource_type, ResourceChain):
        where = f"{properties}.resources[{inside[1]}]"
        if rest.startswith(".properties"):
            where = f"{properties}.resource_properties{rest.removeprefix('.properties')}"
    else:
        where = f"{properties}.{resource_type.definition_properties[0]}{rest}"
    return replace(nested, path=where)
