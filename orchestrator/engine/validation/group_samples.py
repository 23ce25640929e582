"""The members of a group as they would be made, to be looked at before they are
(docs/internals/resource-types.md §A6).

One member of each definition stands for all of its kind. A fault of one names the way through the group's
child, as Heat does, and has its place in the template where the definition is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from orchestrator.engine.validation.nested_faults import nested_path
from orchestrator.engine.validation.property_resolution import Resolved
from orchestrator.errors import Diagnostic
from orchestrator.resources.groups.group_type import GroupType
from orchestrator.resources.groups.resource_chain import ResourceChain
from orchestrator.template.function_view import UNKNOWN
from orchestrator.template.group_template import PARAMETER, MemberDefinitions
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.template import Template

CHILD: Final = "nested_stack"  # what stands for the address of a template that a type made
_MEMBER: Final = re.compile(r"resources\.([^.]+)")


@dataclass(frozen=True, slots=True)
class Sample:
    """A member that stands for others: a template with just it, and how many there are to be of it."""

    template: Template
    values: ParameterValues
    count: int


def samples(kind: GroupType, given: Mapping[str, Any], resolved: Resolved) -> Iterator[Sample]:
    """Yield members of a group whose properties are `given`, as far as they are known."""
    props = dict(given)
    for name in kind.definition_properties:
        value = props.setdefault(name, resolved.values.get(name))  # what holds something unknown is left out
        if value is UNKNOWN:
            return
    planned = kind.planned(props)
    secret = not resolved.secrets.isdisjoint(kind.definition_properties)
    hidden = frozenset({PARAMETER} if secret else ())
    values = ParameterValues({PARAMETER: planned.definitions}, hidden)
    template = planned.members.template()
    resources = template.resources
    assert isinstance(resources, MemberDefinitions)
    for part, definition in zip(planned.members.parts, resources.samples(), strict=True):
        if part.type:
            one = replace(definition, requires=frozenset())
            yield Sample(replace(template, resources={one.name: one}), values, len(part.members))


def group_fault(fault: Diagnostic, kind: GroupType, place: str, properties: str) -> Diagnostic:
    """Return a fault of a member as one of the group at `place`, whose properties are at `properties`."""
    found = nested_path(fault, f"{place}<{CHILD}>")
    inside = _MEMBER.match(fault.path)
    if fault.file or inside is None:
        return found
    rest = fault.path[inside.end() :]
    if isinstance(kind, ResourceChain):
        where = f"{properties}.resources[{inside[1]}]"
        if rest.startswith(".properties"):
            where = f"{properties}.resource_properties{rest.removeprefix('.properties')}"
    else:
        where = f"{properties}.{kind.definition_properties[0]}{rest}"
    return replace(found, path=where)
