"""OS::Heat::ResourceChain: a resource of each type in a list, created in sequence
(docs/internals/resource-types.md §A6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.resources.base import Attribute, Context, Property, Value
from orchestrator.resources.groups.group_type import GroupType, Planned
from orchestrator.resources.nested_type import ChildTemplate, ChildView, Member, NestedStep, SetChild, Settled
from orchestrator.template.group_template import PARAMETER, Definition, Members, Part
from orchestrator.template.index_ranges import Ordinals


class ResourceChain(GroupType):
    """Resources of several types with equal properties, each created after its predecessor."""

    name = "OS::Heat::ResourceChain"
    support_version = "6.0.0"
    definition_properties = ("resources", "resource_properties")
    exposes_member_attributes = True
    properties = {
        "resources": Property(
            "list",
            "The types of the resources; the environment may map them.",
            required=True,
            update_allowed=True,
        ),
        "concurrent": Property("boolean", "Whether the resources are created concurrently.", default=False),
        "resource_properties": Property("map", "The properties of each resource."),
    }
    attributes = {
        "refs": Attribute("The reference ids of the resources.", "list"),
        "attributes": Attribute("The attribute given by the path, by resource name.", "map"),
    }

    def planned(self, props: Mapping[str, Value], *, minimum: int = 0) -> Planned:
        """Return the child: the list defines its size."""
        written = props.get("resource_properties")
        properties = dict(written) if isinstance(written, Mapping) else None
        body = {} if properties is None else {"properties": properties}
        parts, definitions = [], {}
        types = props.get("resources")
        for index, type_name in enumerate(types if isinstance(types, list) else ()):
            definition = Definition(type_name if isinstance(type_name, str) else "", body)
            parts.append(Part.of(definition, Ordinals.of([index])))
            definitions[definition.digest] = definition.value()
        return Planned(Members(tuple(parts), window=0 if props.get("concurrent") else 1), definitions)

    def step(self, ctx: Context, props: Mapping[str, Value], child: ChildView, turn: int) -> NestedStep:
        """Apply the list to the child in one step."""
        if turn:
            return Settled()
        planned = self.planned(props)
        environment = child.environment({PARAMETER: dict(planned.definitions)})
        return SetChild(ChildTemplate("", planned.members.text(), environment))

    def in_order(self, members: Sequence[Member]) -> Sequence[Member]:
        """Return members by their place in the list."""
        return sorted(members, key=lambda member: (len(member.name), member.name))
